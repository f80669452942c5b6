package bus

// Header holds the headers of a message; keys are case-sensitive and used as they are. Its layout is that of the client
// library, so that no copy is made on the way.
type Header map[string][]string

// Set gives the key one value.
func (h Header) Set(key, value string) { h[key] = []string{value} }

// Get returns the first value of the key, or "".
func (h Header) Get(key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// headerSize is an upper bound of the encoded size in bytes.
func headerSize(h Header) int64 {
	if len(h) == 0 {
		return 0
	}
	n := len("NATS/1.0\r\n") + len("\r\n")
	for k, vs := range h {
		for _, v := range vs {
			n += len(k) + len(v) + len(": \r\n")
		}
	}
	return int64(n)
}
