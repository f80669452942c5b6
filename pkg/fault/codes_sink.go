package fault

// Codes of the area SINK: sinks. Numbers are never reused (F2); append at the end.
const (
	SinkUnreachable     Code = "WEIR-SINK-001" // cannot reach the target
	SinkWrongPassword   Code = "WEIR-SINK-002" // the target refused user or password
	SinkNoDatabase      Code = "WEIR-SINK-003" // the target database does not exist
	SinkMissingRight    Code = "WEIR-SINK-004" // the target user lacks a right
	SinkConstraint      Code = "WEIR-SINK-005" // the target refuses a row because of a constraint
	SinkNotEmpty        Code = "WEIR-SINK-006" // the target table exists and is not empty
	SinkPartialMiss     Code = "WEIR-SINK-007" // a partial update found no row in the target
	SinkTruncateRefused Code = "WEIR-SINK-008" // the source truncated a table and the sink does not allow it
	SinkNameClash       Code = "WEIR-SINK-009" // two source tables map to one target table
	SinkUnsupportedType Code = "WEIR-SINK-010" // the target cannot hold a column's type
	SinkMissingColumn   Code = "WEIR-SINK-011" // the target table lacks a column
	SinkWrongKey        Code = "WEIR-SINK-012" // the target table's key differs from the source's
	SinkNoKey           Code = "WEIR-SINK-013" // upsert needs a table with a key
	SinkOwnSource       Code = "WEIR-SINK-014" // the sink writes into a table that the job reads
	SinkFenced          Code = "WEIR-SINK-015" // the target's ledger is held by a newer attempt
	SinkClaimRaced      Code = "WEIR-SINK-016" // the ledger could not be claimed in time
	SinkAmbiguous       Code = "WEIR-SINK-017" // a commit may or may not have been applied
	SinkStageLost       Code = "WEIR-SINK-018" // rows staged for an epoch cannot be read back
	SinkDisk            Code = "WEIR-SINK-019" // the target has no room left
	SinkPathUnusable    Code = "WEIR-SINK-020" // the target directory cannot be used
	SinkManifestExists  Code = "WEIR-SINK-021" // the directory holds the files of another life of the job
	SinkReadOnly        Code = "WEIR-SINK-022" // the target does not accept writes
	SinkRow             Code = "WEIR-SINK-023" // the target cannot take a row
	SinkBusy            Code = "WEIR-SINK-024" // the target asked to try again
	SinkMissingTable    Code = "WEIR-SINK-025" // a table of the target is gone
	SinkBadURL          Code = "WEIR-SINK-026" // the connection string cannot be read
	SinkSchemaChange    Code = "WEIR-SINK-027" // a change of a table's columns does not fit the target
	SinkPartialImage    Code = "WEIR-SINK-028" // a row to append lacks columns
	SinkTooOld          Code = "WEIR-SINK-029" // the target's version is not supported
	SinkDLQFull         Code = "WEIR-SINK-030" // there is no room for dead letters
	SinkDLQRow          Code = "WEIR-SINK-031" // a row is too big for a dead letter
	SinkDLQOvertaken    Code = "WEIR-SINK-032" // the key of a dead letter has had a later change
	SinkDLQRefused      Code = "WEIR-SINK-033" // a dead letter cannot be discarded or replayed now
	SinkEngine          Code = "WEIR-SINK-034" // the target table is not transactional
	SinkSetting         Code = "WEIR-SINK-035" // a setting of the target keeps the sink from writing
	SinkStreamUnfit     Code = "WEIR-SINK-036" // the target stream is missing or cannot hold the events
	SinkStreamForeign   Code = "WEIR-SINK-037" // somebody else has changed the target stream
	SinkEventTooBig     Code = "WEIR-SINK-038" // an event is bigger than the target takes
	SinkCatalog         Code = "WEIR-SINK-039" // the catalog does not do what the sink asks of it
)

func sinkCodes() []Entry {
	return []Entry{
		{
			Code: SinkUnreachable, Name: "SINK_UNREACHABLE", Class: Transient, Exit: ExitEnvironment,
			Title:  "cannot reach the target",
			Remedy: "Bring the target back or correct its address at <where>. Commits are repeated by themselves; nothing is lost.",
		},
		{
			Code: SinkWrongPassword, Name: "SINK_WRONG_PASSWORD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target refused user or password",
			Remedy: "Correct the user or the password in <where>.url; keep it out of the file: url: ${PGURL} or ${file:/run/secrets/pg}.",
		},
		{
			Code: SinkNoDatabase, Name: "SINK_NO_DATABASE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target database does not exist",
			Remedy: "Create it or correct its name in <where>.url.",
		},
		{
			Code: SinkMissingRight, Name: "SINK_MISSING_RIGHT", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target user lacks a right",
			Remedy: "GRANT <right> TO <role>;",
		},
		{
			Code: SinkConstraint, Name: "SINK_CONSTRAINT", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target refuses a row because of a constraint",
			Remedy: "Drop or relax the constraint <constraint> on <table>, then `weir job resume <job>`: the epoch is committed again.",
		},
		{
			Code: SinkNotEmpty, Name: "SINK_NOT_EMPTY", Class: Permanent, Exit: ExitRequest,
			Title:  "the target table exists and is not empty",
			Remedy: "Set existing: keep to write into it as it is, or existing: truncate to empty it first.",
		},
		{
			Code: SinkPartialMiss, Name: "SINK_PARTIAL_MISS", Class: Poison, Exit: ExitEnvironment,
			Title:  "a partial update found no row in the target",
			Remedy: "The source did not send all columns and the target has no row to complete. ALTER TABLE <table> REPLICA IDENTITY FULL; at the source, and restore the row in the target.",
		},
		{
			Code: SinkTruncateRefused, Name: "SINK_TRUNCATE_REFUSED", Class: Permanent, Exit: ExitRequest,
			Title:  "the source truncated a table and the sink does not allow it",
			Remedy: "Add allow: [truncate] to the sink to follow truncates.",
		},
		{
			Code: SinkNameClash, Name: "SINK_NAME_CLASH", Class: Permanent, Exit: ExitRequest,
			Title:  "two source tables map to one target table",
			Remedy: "Set name: \"{schema}_{table}\" in the sink, or write them to two sinks.",
		},
		{
			Code: SinkUnsupportedType, Name: "SINK_TYPE", Class: Permanent, Exit: ExitRequest,
			Title:  "the target cannot hold a column's type",
			Remedy: "Cast the column to a simpler type at the source, or leave the table out of the source.",
		},
		{
			Code: SinkMissingColumn, Name: "SINK_MISSING_COLUMN", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target table lacks a column",
			Remedy: "ALTER TABLE <table> ADD COLUMN <column> <type>;",
		},
		{
			Code: SinkWrongKey, Name: "SINK_WRONG_KEY", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target table's key differs from the source's",
			Remedy: "Give <table> a primary key or unique index on (<key>), or use mode: changelog.",
		},
		{
			Code: SinkNoKey, Name: "SINK_NO_KEY", Class: Permanent, Exit: ExitRequest,
			Title:  "upsert needs a table with a key",
			Remedy: "Give the source table a primary key, or use mode: changelog or append.",
		},
		{
			Code: SinkOwnSource, Name: "SINK_OWN_SOURCE", Class: Permanent, Exit: ExitRequest,
			Title:  "the sink writes into a table that the job reads",
			Remedy: "Choose another schema for the sink, or leave the table out of the source.",
		},
		{
			Code: SinkFenced, Name: "SINK_FENCED", Class: Fenced, Exit: ExitInternal,
			Title:  "the target's ledger is held by a newer attempt",
			Remedy: "Nothing to do: the older committer stops and writes nothing more.",
		},
		{
			Code: SinkClaimRaced, Name: "SINK_CLAIM", Class: Transient, Exit: ExitEnvironment,
			Title:  "the ledger could not be claimed in time",
			Remedy: "A commit of an older attempt still runs in the target. It is repeated by itself; SELECT * FROM pg_stat_activity WHERE application_name LIKE 'weir%' shows it.",
		},
		{
			Code: SinkAmbiguous, Name: "SINK_AMBIGUOUS", Class: Transient, Exit: ExitEnvironment,
			Title:  "a commit may or may not have been applied",
			Remedy: "Nothing to do: the ledger says which, and Weir looks it up.",
		},
		{
			Code: SinkStageLost, Name: "SINK_STAGE_LOST", Class: Permanent, Exit: ExitVerify,
			Title:  "rows staged for an epoch cannot be read back",
			Remedy: "The source is read again from the newest committed epoch: `weir job rewind <job>`",
		},
		{
			Code: SinkDisk, Name: "SINK_DISK", Class: Transient, Exit: ExitEnvironment,
			Title:  "the target has no room left",
			Remedy: "Free space at the target; the commit is repeated by itself.",
		},
		{
			Code: SinkPathUnusable, Name: "SINK_PATH", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target directory cannot be used",
			Remedy: "Make <path> a directory that the sink's process can write.",
		},
		{
			Code: SinkManifestExists, Name: "SINK_FILES_FOREIGN", Class: Permanent, Exit: ExitVerify,
			Title:  "the directory holds the files of another life of the job",
			Remedy: "Choose another path, or move the old files away.",
		},
		{
			Code: SinkReadOnly, Name: "SINK_READ_ONLY", Class: Transient, Exit: ExitEnvironment,
			Title:  "the target does not accept writes",
			Remedy: "The server is read-only or a standby. Point <where>.url to the primary, or wait for the failover to finish.",
		},
		{
			Code: SinkRow, Name: "SINK_ROW", Class: Poison, Exit: ExitEnvironment,
			Title:  "the target cannot take a row",
			Remedy: "Change the target table so that it can hold the row, then `weir job resume <job>`: the epoch is committed again.",
		},
		{
			Code: SinkBusy, Name: "SINK_BUSY", Class: Transient, Exit: ExitEnvironment,
			Title:  "the target asked to try again",
			Remedy: "Nothing to do: the commit is repeated by itself. When it repeats for long, look for what holds locks or connections of the target.",
		},
		{
			Code: SinkMissingTable, Name: "SINK_MISSING_TABLE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a table of the target is gone",
			Remedy: "Restore <table> at the target, or submit the job under a new name.",
		},
		{
			Code: SinkBadURL, Name: "SINK_BAD_URL", Class: Permanent, Exit: ExitRequest,
			Title:  "the connection string cannot be read",
			Remedy: "Set <where>.url to postgres://user:password@host:5432/database, the password from a variable or file: ${PGURL} or ${file:/run/secrets/pg}.",
		},
		{
			Code: SinkSchemaChange, Name: "SINK_SCHEMA_CHANGE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a change of a table's columns does not fit the target",
			Remedy: "One of three: change <table> at the target by hand and `weir job resume <job>`; or cancel the job and submit it with schema_change: <choice> at the sink; or undo the change at the source and submit the job under a new name.",
		},
		{
			Code: SinkPartialImage, Name: "SINK_PARTIAL_IMAGE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a row to append lacks columns that the source did not send",
			Remedy: "ALTER TABLE <table> REPLICA IDENTITY FULL at the source, or use mode: upsert or changelog.",
		},
		{
			Code: SinkTooOld, Name: "SINK_TOO_OLD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target's version is not supported",
			Remedy: "Use PostgreSQL 14, MySQL 8.0.21 or MariaDB 10.6 as the target, or newer.",
		},
		{
			Code: SinkDLQFull, Name: "SINK_DLQ_FULL", Class: Transient, Exit: ExitEnvironment,
			Title:  "there is no room for dead letters",
			Remedy: "Nothing is lost, the commit waits. `weir dlq list <job>` shows the letters; make room with `weir dlq replay <job>` or `weir dlq discard <job>`, or raise the bound of the stream <stream>, see docs/dlq.md.",
		},
		{
			Code: SinkDLQRow, Name: "SINK_DLQ_ROW", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a row that the target cannot take is too big for a dead letter",
			Remedy: "Raise max_payload of the NATS server, or change the target table so that it can hold the row; then `weir job resume <job>`.",
		},
		{
			Code: SinkDLQOvertaken, Name: "SINK_DLQ_OVERTAKEN", Class: Permanent, Exit: ExitRequest,
			Title:  "the key of the dead letter has had a later change",
			Remedy: "The target has, or has had, a newer state of this key: `weir dlq discard <job>`. To put the old one over it: `weir dlq replay <job> --force`.",
		},
		{
			Code: SinkDLQRefused, Name: "SINK_DLQ_REFUSED", Class: Permanent, Exit: ExitRequest,
			Title:  "the dead letter cannot be discarded or replayed now",
			Remedy: "`weir status <job>` shows which epoch is committed; a letter of a later one may be touched once its epoch is. `weir dlq list <job>` shows the letters.",
		},
		{
			Code: SinkEngine, Name: "SINK_ENGINE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target table is not transactional",
			Remedy: "ALTER TABLE <table> ENGINE = InnoDB; then `weir job resume <job>`.",
		},
		{
			Code: SinkSetting, Name: "SINK_SETTING", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a setting of the target keeps the sink from writing",
			Remedy: "SET GLOBAL <setting> = <value>; then `weir job resume <job>`. `weir doctor` has the statement that also lasts.",
		},
		{
			Code: SinkStreamUnfit, Name: "SINK_STREAM", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the target stream is missing or cannot hold the events",
			Remedy: "Change the stream as told, or let Weir make it: `create: true` at the sink and no stream of that name. docs/nats-sink.md lists what it must be. Then `weir job resume <job>`.",
		},
		{
			Code: SinkStreamForeign, Name: "SINK_STREAM_FOREIGN", Class: Permanent, Exit: ExitVerify,
			Title:  "somebody else has written to the target stream, or removed its end",
			Remedy: "`nats stream get <stream> --last-for '<prefix>.>'` shows the newest message. Keep others from the subjects <prefix>.> and remove exactly what they wrote last: `nats stream rmm <stream> <seq>`; docs/nats-sink.md, \"When somebody else writes\". Or submit the job under a new name with another stream.",
		},
		{
			Code: SinkEventTooBig, Name: "SINK_EVENT_TOO_BIG", Class: Poison, Exit: ExitEnvironment,
			Title:  "an event is bigger than the target takes",
			Remedy: "Raise max_payload of the target server (and max_msg_size of the stream <stream>), then `weir job resume <job>`: the commit goes on behind the last event. Or set dlq: true at the sink and put such rows aside.",
		},
		{
			Code: SinkCatalog, Name: "SINK_CATALOG", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the catalog does not do what the sink asks of it",
			Remedy: "Correct <where> by what the catalog says, then `weir job resume <job>`. For a catalog that does not commit to several tables at once: rest: {commit: ordered}.",
		},
	}
}
