package fault

// Codes of the area MY: MySQL and MariaDB as source. Numbers are never reused (F2); append at the end.
const (
	MYCannotConnect   Code = "WEIR-MY-001" // cannot connect to MySQL
	MYAccess          Code = "WEIR-MY-002" // MySQL refused user or password
	MYNoRight         Code = "WEIR-MY-003" // the user lacks a right
	MYTooOld          Code = "WEIR-MY-004" // the server is too old
	MYNoBinlog        Code = "WEIR-MY-005" // the server writes no binary log
	MYSetting         Code = "WEIR-MY-006" // a setting of the server leaves changes out of the log
	MYNoTables        Code = "WEIR-MY-007" // no table matches the patterns
	MYTypeUndecodable Code = "WEIR-MY-008" // a column's type cannot be decoded
	MYPurged          Code = "WEIR-MY-009" // the server has purged log that the job still needs
	MYOtherHistory    Code = "WEIR-MY-010" // the server does not have what the job has read
	MYDecode          Code = "WEIR-MY-011" // an event of the binary log cannot be decoded
	MYDisconnected    Code = "WEIR-MY-012" // the connection to the server broke
	MYSchemaChanged   Code = "WEIR-MY-013" // a captured table changed in a way that this build cannot follow
	MYImage           Code = "WEIR-MY-014" // the log has a change without all its columns
	MYIncident        Code = "WEIR-MY-015" // the server says that its log has a gap
	MYServerID        Code = "WEIR-MY-016" // another replica uses the server id
	MYXA              Code = "WEIR-MY-017" // a distributed transaction cannot be followed
	MYKeylessBusy     Code = "WEIR-MY-018" // a table without a key is too large or too busy to be copied at once
	MYServerIDTaken   Code = "WEIR-MY-020" // the server id of a source is taken
	MYTableRemoved    Code = "WEIR-MY-019" // a captured table was dropped or renamed
	MYRefused         Code = "WEIR-MY-021" // the server refused what it was asked
	MYCopyAltered     Code = "WEIR-MY-022" // the columns of a table changed while it was copied
	MYSilent          Code = "WEIR-MY-023" // the server does not answer
	MYNotOneServer    Code = "WEIR-MY-024" // the connections of a source reach different servers
)

func myCodes() []Entry {
	return []Entry{
		{
			Code: MYCannotConnect, Name: "MY_CANNOT_CONNECT", Class: Transient, Exit: ExitEnvironment, Away: true,
			Title:  "cannot connect to MySQL",
			Remedy: "Check host and port in <where>.url, that the server runs and listens on that address.",
		},
		{
			Code: MYAccess, Name: "MY_ACCESS", Class: Permanent, Exit: ExitEnvironment,
			Title:  "MySQL refused user or password",
			Remedy: "Correct the user or the password in <where>.url; keep it out of the file: url: ${MYSQLURL} or ${file:/run/secrets/mysql}.",
		},
		{
			Code: MYNoRight, Name: "MY_NO_RIGHT", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the user lacks a right",
			Remedy: "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO <user>;",
		},
		{
			Code: MYTooOld, Name: "MY_TOO_OLD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server is too old",
			Remedy: "Upgrade the server to <want> or newer.",
		},
		{
			Code: MYNoBinlog, Name: "MY_NO_BINLOG", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server writes no binary log",
			Remedy: "Set log_bin in the server's configuration and restart it.",
		},
		{
			Code: MYSetting, Name: "MY_SETTING", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a setting of the server leaves changes out of the log",
			Remedy: "SET PERSIST <setting> = <value>; then let the sessions of the applications reconnect.",
		},
		{
			Code: MYNoTables, Name: "MY_NO_TABLES", Class: Permanent, Exit: ExitRequest,
			Title:  "no table matches the patterns",
			Remedy: "Compare the patterns with SELECT table_schema, table_name FROM information_schema.tables. A pattern is database.table, with * for any letters and a leading ! to exclude; letter case counts.",
		},
		{
			Code: MYTypeUndecodable, Name: "MY_TYPE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a column's type cannot be decoded",
			Remedy: "Leave the table out of the source: tables: [\"!<table>\"], or change the column's type.",
		},
		{
			Code: MYPurged, Name: "MY_PURGED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server has purged log that the job still needs",
			Remedy: "The changes since the last epoch are gone from the server. Raise binlog_expire_logs_seconds, then have every table copied anew from the log as it is now: `weir job resnapshot <job>`",
		},
		{
			Code: MYOtherHistory, Name: "MY_OTHER_HISTORY", Class: Permanent, Exit: ExitVerify,
			Title:  "the server does not have what the job has read",
			Remedy: "The address leads to another server, or to one that lost transactions in a failover or was reset. Point <where>.url to the right server and resume the job: `weir job resume <job>`. When this is the right server, have every table copied anew from its log: `weir job resnapshot <job>`",
		},
		{
			Code: MYDecode, Name: "MY_DECODE", Class: Bug, Exit: ExitInternal,
			Title:  "an event of the binary log cannot be decoded",
			Remedy: "Leave the table out of the source and report this with the versions of the server and of Weir.",
		},
		{
			Code: MYDisconnected, Name: "MY_DISCONNECTED", Class: Transient, Exit: ExitEnvironment, Away: true,
			Title:  "the connection to the server broke",
			Remedy: "Reading goes on by itself from the last durable position.",
		},
		{
			Code: MYSchemaChanged, Name: "MY_SCHEMA_CHANGED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a captured table changed in a way that this build cannot follow",
			Remedy: "Copy the table anew: `weir job resnapshot <job>` and the table's name; or leave <table> out of the source with `weir job apply`.",
		},
		{
			Code: MYImage, Name: "MY_ROW_IMAGE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the log has a change without all its columns",
			Remedy: "SET PERSIST binlog_row_image = FULL; SET PERSIST binlog_row_value_options = ''; look for sessions that set their own; then copy the table anew: `weir job resnapshot <job> <table>`",
		},
		{
			Code: MYIncident, Name: "MY_INCIDENT", Class: Permanent, Exit: ExitVerify,
			Title:  "the server says that its log has a gap",
			Remedy: "Changes are missing from the log. Find the cause in the server's error log, then have every table copied anew from the log as it is now: `weir job resnapshot <job>`",
		},
		{
			Code: MYServerID, Name: "MY_SERVER_ID", Class: Transient, Exit: ExitEnvironment,
			Title:  "another replica uses the server id",
			Remedy: "Find the other replica with SHOW REPLICAS. Weir takes another id at its next attempt.",
		},
		{
			Code: MYXA, Name: "MY_XA", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a distributed transaction cannot be followed",
			Remedy: "Its rows are not at hand: have every table copied anew from the log as it is now: `weir job resnapshot <job>`. Commit distributed transactions that were prepared long ago before that, and make large ones smaller.",
		},
		{
			Code: MYKeylessBusy, Name: "MY_KEYLESS", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a table without a key is too large or too busy to be copied at once",
			Remedy: "Give the table <table> a primary key, or leave it out of the source.",
		},
		{
			Code: MYServerIDTaken, Name: "MY_SERVER_ID_TAKEN", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server id of a source is taken",
			Remedy: "Give each source another server_id, with room for one more id per reader, or leave it out: Weir then chooses. Other replicas of the server are listed by SHOW REPLICAS.",
		},
		{
			Code: MYTableRemoved, Name: "MY_TABLE_REMOVED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a captured table was dropped or renamed",
			Remedy: "When the table was dropped, or has another name now: `weir job apply` with the job's file takes the tables as they are. When another table has its name now, copy it anew: `weir job resnapshot <job> <table>`",
		},
		{
			Code: MYRefused, Name: "MY_REFUSED", Class: Transient, Exit: ExitEnvironment,
			Title:  "the server refused what it was asked",
			Remedy: "Weir asks again. When it repeats, mend what the server's answer names: a full disk, a limit of the server or of the user, a broken table.",
		},
		{
			Code: MYCopyAltered, Name: "MY_COPY_ALTERED", Class: Transient, Exit: ExitEnvironment,
			Title:  "the columns of a table changed while it was copied",
			Remedy: "Nothing to do: a table of which nothing was read yet is copied in the columns that it has now; of one that was read in part the next attempt says MY_SCHEMA_CHANGED.",
		},
		{
			Code: MYSilent, Name: "MY_SILENT", Class: Transient, Exit: ExitEnvironment, Away: true,
			Title:  "the server does not answer",
			Remedy: "See whether the server of <where>.url is frozen, out of memory or waits for its disk, and whether the network to it swallows what is sent. Weir asks again, and goes on by itself when there is an answer.",
		},
		{
			Code: MYNotOneServer, Name: "MY_NOT_ONE_SERVER", Class: Transient, Exit: ExitEnvironment,
			Title:  "the connections of a source reach different servers",
			Remedy: "After a restart or a failover of the server nothing is to be done: Weir connects again. When it repeats, let <where>.url name one server, not what shares connections out among several.",
		},
	}
}
