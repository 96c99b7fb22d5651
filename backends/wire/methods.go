package wire

// Methods of requests.
const (
	MethodInitialize = "initialize"
	MethodExecute    = "execute"
	MethodRunCode    = "run_code"

	MethodProcessStart               = "process/start"
	MethodProcessList                = "process/list"
	MethodProcessGet                 = "process/get"
	MethodProcessRead                = "process/read"
	MethodProcessWrite               = "process/write"
	MethodProcessCloseStdin          = "process/close_stdin"
	MethodProcessResize              = "process/resize"
	MethodProcessSignal              = "process/signal"
	MethodProcessStop                = "process/stop"
	MethodProcessInputAvailable      = "process/input_available"
	MethodProcessCompletionPending   = "process/completion_pending"
	MethodProcessCompletionDelivered = "process/completion_delivered"
	MethodProcessCompletionMode      = "process/completion_mode"
	MethodProcessRecheck             = "process/recheck"
	MethodProcessRecheckDelivered    = "process/recheck_delivered"
	MethodProcessCleanup             = "process/cleanup"

	MethodExportRead   = "export/read"
	MethodExportClose  = "export/close"
	MethodExportStream = "export/stream"

	MethodStat          = "fs/stat"
	MethodReadDirectory = "fs/read_directory"
	MethodReadFile      = "fs/read_file"
	MethodWriteFile     = "fs/write_file"

	MethodJobRun = "job/run"

	MethodToolsList = "tools/list"
	MethodPacksAdd  = "packs/add"
	MethodShutdown  = "shutdown"
)

// Methods of frames that have no reply of their own.
const (
	methodCancel    = "cancel"     // host to worker: the request with this id
	methodCallback  = "callback"   // host to worker: the answer to a nested call
	methodTool      = "tool"       // worker to host: a nested call
	methodProcess   = "process"    // worker to host: an event
	methodBody      = "body"       // both ways: a piece of a body
	methodBodyTaken = "body_taken" // both ways: how much of a body was taken
)

// Capabilities. A peer that does not announce one never sees what it names.
const (
	// CapProcessStart is the contract's own: start, list and close work, and the
	// start reply and the durable records carry the host's operation_id.
	CapProcessStart = "process.start.v1"
	// CapBulk is bodies of raw bytes beside frames.
	CapBulk = "caisson.bulk.v1"
	// CapErrors is the member "detail" of error frames.
	CapErrors = "caisson.errors.v1"
	// CapFS is the fs/* methods.
	CapFS = "caisson.fs.v1"
	// CapProcess is process/close_stdin, process/signal and our members of
	// process records.
	CapProcess = "caisson.process.v1"
	// CapLimits is the member max_output_bytes of execute.
	CapLimits = "caisson.limits.v1"
	// CapShutdown is the method shutdown.
	CapShutdown = "caisson.shutdown.v1"
	// CapForget is the member forget of shutdown. It needs [CapShutdown] too.
	CapForget = "caisson.forget.v1"
	// CapTools is the method tools/list.
	CapTools = "caisson.tools.v1"
	// CapJob is the method job/run. It needs [CapBulk] too.
	CapJob = "caisson.job.v1"
	// CapPacks is the method packs/add, and tools/list and execute for the tools
	// of packs.
	CapPacks = "caisson.packs.v1"
	// CapActors is the member actor_kind of execute, process/start and records.
	CapActors = "caisson.actors.v1"
	// CapSocket is the member socket of initialize. In caisson.socket.v1 it was the
	// worker that listened.
	CapSocket = "caisson.socket.v2"
)
