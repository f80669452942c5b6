package bus

import "testing"

func TestVersionForMicroServices(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "0.0.0", "dev": "0.0.0", "v1.2.3": "1.2.3", "1.2.3-4-gabc": "1.2.3-4-gabc", "1.2": "0.0.0",
	} {
		if got := semver(in); got != want {
			t.Errorf("semver(%q) = %q, want %q", in, got, want)
		}
	}
}
