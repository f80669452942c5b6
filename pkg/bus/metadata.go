package bus

// Keys of the metadata that streams, buckets and consumers carry, so that `nats stream info` and `nats consumer info`
// explain them. Nothing is decided on them but whose a stream is.
const (
	// metaRole says what the asset is for, one of the roles below.
	metaRole   = "weir"
	metaJob    = "weir.job"
	metaLife   = "weir.life"
	metaFence  = "weir.fence"
	metaVertex = "weir.vertex"
	// metaSubtask is the receiver of a consumer of rows, metaClient the connection that watches.
	metaSubtask = "weir.subtask"
	metaClient  = "weir.client"
)

// Values of metaRole.
const (
	roleBase    = "base"    // every mesh has it
	roleData    = "data"    // the rows of one attempt
	roleLetters = "letters" // the dead letters of a job
	roleOutlet  = "outlet"  // the events that a sink of type nats delivers
	roleInput   = "input"   // what one subtask receives
	roleWatch   = "watch"   // one reader of a stream, for as long as it reads
)
