package mycodec

// Settings are the session variables under which a SELECT's text form is the one this package reads. Values are SQL. Every
// session whose cells it decodes runs under them, or one value would have two texts.
func Settings() map[string]string {
	return map[string]string{
		"character_set_results": "NULL", // as stored; converted here, as what the log has
		"time_zone":             "'+00:00'",
		"sql_mode":              "'NO_BACKSLASH_ESCAPES,NO_UNSIGNED_SUBTRACTION'", // without PAD_CHAR_TO_FULL_LENGTH
	}
}
