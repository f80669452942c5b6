package fault

// Codes of the area PG: PostgreSQL as source. Numbers are never reused (F2); append at the end.
const (
	PGCannotConnect      Code = "WEIR-PG-001" // cannot connect to PostgreSQL
	PGWrongPassword      Code = "WEIR-PG-002" // PostgreSQL refused user or password
	PGNoDatabase         Code = "WEIR-PG-003" // the database does not exist
	PGTooOld             Code = "WEIR-PG-004" // the PostgreSQL server is too old
	PGNoReplicationRight Code = "WEIR-PG-005" // the user may not start replication
	PGWALLevel           Code = "WEIR-PG-006" // wal_level is not logical
	PGNoFreeSlot         Code = "WEIR-PG-007" // no replication slot is free
	PGNoFreeWalsender    Code = "WEIR-PG-008" // no walsender is free
	PGSlotLost           Code = "WEIR-PG-009" // the slot has lost log that the job still needs
	PGSlotMissing        Code = "WEIR-PG-010" // the job's slot is gone
	PGSlotActive         Code = "WEIR-PG-011" // another connection uses the slot
	PGSlotForeign        Code = "WEIR-PG-012" // a slot of this name exists and is not usable for the job
	PGPublicationMissing Code = "WEIR-PG-013" // the publication does not exist
	PGPublicationTable   Code = "WEIR-PG-014" // a table is not in the publication
	PGSystemChanged      Code = "WEIR-PG-015" // the address now leads to another PostgreSQL system
	PGTimelineChanged    Code = "WEIR-PG-016" // the server was promoted or restored to another timeline
	PGBehind             Code = "WEIR-PG-017" // the saved position is older than what the slot has confirmed
	PGNoIdentity         Code = "WEIR-PG-018" // a table has neither a primary key nor a replica identity
	PGTypeUndecodable    Code = "WEIR-PG-019" // a column's type cannot be decoded
	PGNoTables           Code = "WEIR-PG-020" // no table matches the patterns
	PGNoSelect           Code = "WEIR-PG-021" // the user may not read a table
	PGNoCreate           Code = "WEIR-PG-022" // the user may not create a publication
	PGDecode             Code = "WEIR-PG-023" // a message of the replication stream cannot be decoded
	PGDisconnected       Code = "WEIR-PG-024" // the replication connection broke
	PGSchemaChanged      Code = "WEIR-PG-025" // a captured table changed in a way that this build cannot follow
	PGStandby            Code = "WEIR-PG-026" // the server is a standby and cannot be used for this
	PGKeylessTooBig      Code = "WEIR-PG-027" // a table without a key is too large to be copied at once
	PGAhead              Code = "WEIR-PG-028" // the saved position lies behind the end of the server's log
	PGTableDiffers       Code = "WEIR-PG-029" // rows of a table changed in a way that the log does not show
	PGSavepoint          Code = "WEIR-PG-030" // the log cannot be kept for a savepoint
	PGSlotMoved          Code = "WEIR-PG-031" // the user's own slot is past what the targets have
	PGCopyAltered        Code = "WEIR-PG-032" // the columns of a table changed while it was copied
)

func pgCodes() []Entry {
	return []Entry{
		{
			Code: PGCannotConnect, Name: "PG_CANNOT_CONNECT", Class: Transient, Exit: ExitEnvironment, Away: true,
			Title:  "cannot connect to PostgreSQL",
			Remedy: "Check host and port in <where>.url, that the server runs, listens on that address and that pg_hba.conf lets this node in.",
		},
		{
			Code: PGWrongPassword, Name: "PG_WRONG_PASSWORD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "PostgreSQL refused user or password",
			Remedy: "Correct the user or the password in <where>.url; keep it out of the file: url: ${PGURL} or ${file:/run/secrets/pg}.",
		},
		{
			Code: PGNoDatabase, Name: "PG_NO_DATABASE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the database does not exist",
			Remedy: "Create it or correct its name in <where>.url.",
		},
		{
			Code: PGTooOld, Name: "PG_TOO_OLD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the PostgreSQL server is too old",
			Remedy: "Upgrade the server to <want> or newer.",
		},
		{
			Code: PGNoReplicationRight, Name: "PG_NO_REPLICATION_RIGHT", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the user may not start replication",
			Remedy: "ALTER ROLE <role> REPLICATION;",
		},
		{
			Code: PGWALLevel, Name: "PG_WAL_LEVEL", Class: Permanent, Exit: ExitEnvironment,
			Title:  "wal_level is not logical",
			Remedy: "ALTER SYSTEM SET wal_level = logical; then restart the server.",
		},
		{
			Code: PGNoFreeSlot, Name: "PG_NO_FREE_SLOT", Class: Permanent, Exit: ExitEnvironment,
			Title:  "no replication slot is free",
			Remedy: "Drop a slot that is no longer used (SELECT slot_name, active FROM pg_replication_slots), or raise max_replication_slots and restart the server.",
		},
		{
			Code: PGNoFreeWalsender, Name: "PG_NO_FREE_WALSENDER", Class: Transient, Exit: ExitEnvironment,
			Title:  "no walsender is free",
			Remedy: "Stop a replication connection that is no longer used (SELECT * FROM pg_stat_replication), or raise max_wal_senders and restart the server.",
		},
		{
			Code: PGSlotLost, Name: "PG_SLOT_LOST", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the slot has lost log that the job still needs",
			Remedy: "The changes since the last epoch are gone from the server. Raise max_slot_wal_keep_size, then have every table copied anew through a new slot: `weir job resnapshot <job>`. A slot that the spec names, drop and make again before that.",
		},
		{
			Code: PGSlotMissing, Name: "PG_SLOT_MISSING", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the job's slot is gone",
			Remedy: "The changes since the last epoch cannot be read any more. Find out who dropped <slot>, then have every table copied anew through a new slot: `weir job resnapshot <job>`. A slot that the spec names, make again before that.",
		},
		{
			Code: PGSlotActive, Name: "PG_SLOT_ACTIVE", Class: Transient, Exit: ExitEnvironment,
			Title:  "another connection uses the slot",
			Remedy: "Another attempt, or another program, reads <slot>. Weir ends its own older connections by itself; anything else must be stopped, or give the source its own slot: name.",
		},
		{
			Code: PGSlotForeign, Name: "PG_SLOT_FOREIGN", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a slot of this name exists and is not usable for the job",
			Remedy: "When the spec names the slot, drop it and make it again: SELECT pg_drop_replication_slot('<slot>'); SELECT pg_create_logical_replication_slot('<slot>', 'pgoutput'); When Weir had made it, have every table copied anew through a new one: `weir job resnapshot <job>`",
		},
		{
			Code: PGPublicationMissing, Name: "PG_PUBLICATION_MISSING", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the publication does not exist",
			Remedy: "CREATE PUBLICATION <publication> FOR TABLE <tables>; or let Weir make it by leaving out publication:.",
		},
		{
			Code: PGPublicationTable, Name: "PG_PUBLICATION_TABLE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a table is not in the publication",
			Remedy: "ALTER PUBLICATION <publication> ADD TABLE <table>;",
		},
		{
			Code: PGSystemChanged, Name: "PG_SYSTEM_CHANGED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the address now leads to another PostgreSQL system",
			Remedy: "The system identifier differs from the one the positions belong to. Point <where>.url to the right server, or submit the job under a new name.",
		},
		{
			Code: PGTimelineChanged, Name: "PG_TIMELINE_CHANGED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server was promoted or restored to another timeline",
			Remedy: "Changes that only the old server had are in no log any more. Have every table copied anew through a new slot: `weir job resnapshot <job>`",
		},
		{
			Code: PGBehind, Name: "PG_BEHIND_CONFIRMED", Class: Permanent, Exit: ExitVerify,
			Title:  "the saved position is older than what the slot has confirmed",
			Remedy: "The server no longer sends the changes in between: another reader moved the slot, somebody made it again, or the bus was restored from an older copy. Bring the newer copy back; when that is lost, `weir job adopt <job>` goes on from where the targets are. Or have every table copied anew through a new slot: `weir job resnapshot <job>`",
		},
		{
			Code: PGNoIdentity, Name: "PG_NO_REPLICA_IDENTITY", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a table has neither a primary key nor a replica identity",
			Remedy: "ALTER TABLE <table> ADD PRIMARY KEY (...); or ALTER TABLE <table> REPLICA IDENTITY FULL; or leave it out: tables: [\"!<table>\"].",
		},
		{
			Code: PGTypeUndecodable, Name: "PG_TYPE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a column's type cannot be decoded",
			Remedy: "Leave the table out of the source: tables: [\"!<table>\"], or change the column's type.",
		},
		{
			Code: PGNoTables, Name: "PG_NO_TABLES", Class: Permanent, Exit: ExitRequest,
			Title:  "no table matches the patterns",
			Remedy: "Compare the patterns with SELECT schemaname, tablename FROM pg_tables. A pattern is schema.table, with * for any letters and a leading ! to exclude; letter case counts.",
		},
		{
			Code: PGNoSelect, Name: "PG_NO_SELECT", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the user may not read a table",
			Remedy: "GRANT SELECT ON <table> TO <role>;",
		},
		{
			Code: PGNoCreate, Name: "PG_NO_CREATE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the user may not create a publication",
			Remedy: "GRANT CREATE ON DATABASE <database> TO <role>; and make the role owner of the tables, or create the publication yourself: CREATE PUBLICATION <publication> FOR TABLE <tables>;",
		},
		{
			Code: PGDecode, Name: "PG_DECODE", Class: Bug, Exit: ExitInternal,
			Title:  "a message of the replication stream cannot be decoded",
			Remedy: "Report it with the server's version. Nothing was lost; the attempt restarts from the last durable epoch.",
		},
		{
			Code: PGDisconnected, Name: "PG_DISCONNECTED", Class: Transient, Exit: ExitEnvironment, Away: true,
			Title:  "the replication connection broke",
			Remedy: "Nothing to do: Weir reconnects and reads on from the last durable epoch. When it repeats, look at wal_sender_timeout and the server's log.",
		},
		{
			Code: PGSchemaChanged, Name: "PG_SCHEMA_CHANGED", Class: Permanent, Exit: ExitRequest,
			Title:  "a captured table changed in a way that this build cannot follow",
			Remedy: "When columns changed, copy the table anew: `weir job resnapshot <job>` and the table's name. When it was renamed, or dropped and made again, `weir job apply` with the job's file takes it as it is today.",
		},
		{
			Code: PGStandby, Name: "PG_STANDBY", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server is a standby and cannot be used for this",
			Remedy: "Point <where>.url to the primary.",
		},
		{
			Code: PGKeylessTooBig, Name: "PG_KEYLESS_TOO_BIG", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a table without a key is too large to be copied at once",
			Remedy: "Give the table a key: ALTER TABLE <table> ADD PRIMARY KEY (...); or leave it out of <where>.tables; or follow only its log, in a job of its own with snapshot: {mode: never}.",
		},
		{
			Code: PGAhead, Name: "PG_AHEAD_OF_LOG", Class: Permanent, Exit: ExitVerify,
			Title:  "the saved position lies behind the end of the server's log",
			Remedy: "The server was put back to an older copy of itself, and the targets hold changes that it no longer has. When the server is right as it is, have every table copied anew through a new slot: `weir job resnapshot <job>`",
		},
		{
			Code: PGTableDiffers, Name: "PG_TABLE_DIFFERS", Class: Permanent, Exit: ExitVerify,
			Title:  "a change of a table gave its rows values that the log does not show",
			Remedy: "The targets no longer have what the source has. Copy the table anew: `weir job resnapshot <job> <table>`",
		},
		{
			Code: PGSavepoint, Name: "PG_SAVEPOINT", Class: Permanent, Exit: ExitRequest,
			Title:  "the log cannot be kept for a savepoint",
			Remedy: "Leave slot: out of the source, so that Weir makes it. A suspended job keeps its place without a savepoint: `weir job suspend`.",
		},
		{
			Code: PGSlotMoved, Name: "PG_SLOT_MOVED", Class: Permanent, Exit: ExitVerify,
			Title:  "the slot that the spec names is past what the targets have",
			Remedy: "Weir moves a slot past epochs without rows, another program past rows that would be lost. When nothing but Weir can have moved <slot>: `weir job adopt <job> --trust-slot`. Otherwise have every table copied anew: make the slot again, then `weir job resnapshot <job>`",
		},
		{
			Code: PGCopyAltered, Name: "PG_COPY_ALTERED", Class: Transient, Exit: ExitEnvironment,
			Title:  "the columns of a table changed while it was copied",
			Remedy: "Nothing to do: the copy goes on from the last durable epoch, in the columns that the table has now.",
		},
	}
}
