package pgcodec

// Settings are the session settings under which the server's text forms are the ones this package reads and writes. Every
// session whose cells it decodes or whose columns it fills runs under them: replication, snapshot and target alike, or
// one value would have two texts. The caller may change the map.
func Settings() map[string]string {
	return map[string]string{
		"client_encoding":       "UTF8",
		"DateStyle":             "ISO",
		"IntervalStyle":         "postgres",
		"TimeZone":              "UTC",
		"extra_float_digits":    "1", // the shortest text that reads back as the same number
		"bytea_output":          "hex",
		"lc_monetary":           "C",
		"xmloption":             "content", // for reading back: a fragment is no document
		"array_nulls":           "on",      // for reading back: NULL is no text
		"quote_all_identifiers": "off",
		// Names of objects, as regclass and format_type print them, are qualified by what is not on the path.
		"search_path": "pg_catalog",
	}
}
