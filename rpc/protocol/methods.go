package protocol

// The methods' names.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "initialized"
	MethodShutdown    = "shutdown"
	MethodExit        = "exit"
	MethodCancel      = "$/cancelRequest"
	MethodProgress    = "$/progress"
	MethodSetTrace    = "$/setTrace"
	MethodLogTrace    = "$/logTrace"
	MethodLogMessage  = "window/logMessage"

	MethodProfileList   = "profile/list"
	MethodProfileCheck  = "profile/check"
	MethodBackendList   = "backend/list"
	MethodBackendPrune  = "backend/prune"
	MethodConfigChanged = "config/changed"

	MethodSessionOpen    = "session/open"
	MethodSessionGet     = "session/get"
	MethodSessionList    = "session/list"
	MethodSessionFork    = "session/fork"
	MethodSessionClose   = "session/close"
	MethodSessionDelete  = "session/delete"
	MethodSessionChanged = "session/changed"
	MethodSessionRemoved = "session/removed"

	MethodToolList           = "tool/list"
	MethodToolCall           = "tool/call"
	MethodToolOffer          = "tool/offer"
	MethodToolInvoke         = "tool/invoke"
	MethodGuardConfirm       = "guard/confirm"
	MethodExecutionStarted   = "execution/started"
	MethodExecutionCompleted = "execution/completed"
	MethodExecutionFailed    = "execution/failed"

	MethodFileStat      = "fs/stat"
	MethodReadDirectory = "fs/readDirectory"
	MethodFileRead      = "fs/readFile"
	MethodFileWrite     = "fs/writeFile"

	MethodProcessStart       = "process/start"
	MethodProcessList        = "process/list"
	MethodProcessGet         = "process/get"
	MethodProcessStop        = "process/stop"
	MethodProcessSignal      = "process/signal"
	MethodProcessWrite       = "process/write"
	MethodProcessCloseStdin  = "process/closeStdin"
	MethodProcessResize      = "process/resize"
	MethodProcessRead        = "process/read"
	MethodProcessWait        = "process/wait"
	MethodProcessSubscribe   = "process/subscribe"
	MethodProcessUnsubscribe = "process/unsubscribe"
	MethodProcessEvent       = "process/event"
	MethodProcessOutput      = "process/output"

	MethodArtifactPublish   = "artifact/publish"
	MethodArtifactList      = "artifact/list"
	MethodArtifactRead      = "artifact/read"
	MethodArtifactPreview   = "artifact/preview"
	MethodArtifactSave      = "artifact/save"
	MethodArtifactDelete    = "artifact/delete"
	MethodArtifactPublished = "artifact/published"
	MethodArtifactChanged   = "artifact/changed"

	MethodJobRun  = "job/run"
	MethodCodeRun = "code/run"
)

// Direction says who sends a method.
type Direction string

// The directions.
const (
	ToServer Direction = "clientToServer"
	ToClient Direction = "serverToClient"
	// BothWays is a notification that either side sends.
	BothWays Direction = "bothWays"
)

// Method describes one method of the protocol.
type Method struct {
	Name      string
	Direction Direction
	// Notification says that it has no answer.
	Notification bool
	// Params and Result are zero values of the method's types; nil means none.
	// A result that is nil is null on the wire.
	Params any
	Result any
	// Doc says in one sentence what it does.
	Doc string
}

// Methods is the table of all methods, in the order of the documentation.
func Methods() []Method {
	request := func(name string, params, result any, doc string) Method {
		return Method{Name: name, Direction: ToServer, Params: params, Result: result, Doc: doc}
	}
	ask := func(name string, params, result any, doc string) Method {
		return Method{Name: name, Direction: ToClient, Params: params, Result: result, Doc: doc}
	}
	tell := func(name string, params any, doc string) Method {
		return Method{Name: name, Direction: ToServer, Notification: true, Params: params, Doc: doc}
	}
	event := func(name string, params any, doc string) Method {
		return Method{Name: name, Direction: ToClient, Notification: true, Params: params, Doc: doc}
	}
	return []Method{
		request(MethodInitialize, InitializeParams{}, InitializeResult{}, "Begins the connection; nothing else is answered before it."),
		tell(MethodInitialized, Empty{}, "Tells that the client has the answer to initialize."),
		request(MethodShutdown, nil, nil, "Detaches from every environment; only exit may follow."),
		tell(MethodExit, nil, "Ends the service: exit code 0, or 1 without shutdown."),
		{
			Name: MethodCancel, Direction: BothWays, Notification: true, Params: CancelParams{},
			Doc: "Cancels a request of the other side.",
		},
		event(MethodProgress, ProgressParams{}, "Tells how a request gets on."),
		tell(MethodSetTrace, SetTraceParams{}, "Sets how much $/logTrace tells."),
		event(MethodLogTrace, LogTraceParams{}, "One line of trace."),
		event(MethodLogMessage, LogMessageParams{}, "One line of the service's log."),

		request(MethodProfileList, Empty{}, ProfileListResult{}, "Lists the user's profiles."),
		request(MethodProfileCheck, ProfileCheckParams{}, Health{}, "Really tries a profile."),
		request(MethodBackendList, Empty{}, BackendListResult{}, "Says what this build can do, and which backends are usable now."),
		request(MethodBackendPrune, BackendPruneParams{}, BackendPruneResult{}, "Removes what backends left behind whose owner is proven gone."),
		event(MethodConfigChanged, ConfigChangedParams{}, "The user's configuration file changed."),

		request(MethodSessionOpen, SessionOpenParams{}, SessionOpenResult{}, "Makes or resumes a session."),
		request(MethodSessionGet, SessionParams{}, SessionResult{}, "Returns one session."),
		request(MethodSessionList, SessionListParams{}, SessionListResult{}, "Lists the sessions."),
		request(MethodSessionFork, SessionForkParams{}, SessionResult{}, "Makes a session of the profile that another one was bound to."),
		request(MethodSessionClose, SessionParams{}, SessionResult{}, "Closes a session; a persistent environment is kept."),
		request(MethodSessionDelete, SessionDeleteParams{}, SessionDeleteResult{}, "Closes and forgets a session and removes its environment."),
		event(MethodSessionChanged, SessionChangedParams{}, "A session is not as it was."),
		event(MethodSessionRemoved, SessionRemovedParams{}, "A session was deleted."),

		request(MethodToolList, SessionParams{}, ToolListResult{}, "Lists what a session's environment offers."),
		request(MethodToolCall, ToolCallParams{}, ToolCallResult{}, "Runs one tool."),
		request(MethodToolOffer, ToolOfferParams{}, Empty{}, "Offers the client's own tools to programs."),
		ask(MethodToolInvoke, ToolInvokeParams{}, ToolInvokeResult{}, "Runs a tool that the client offered."),
		ask(MethodGuardConfirm, GuardConfirmParams{}, GuardConfirmResult{}, "Asks a person whether a call may run."),
		event(MethodExecutionStarted, ExecutionParams{}, "A call began."),
		event(MethodExecutionCompleted, ExecutionParams{}, "A call ended with a result."),
		event(MethodExecutionFailed, ExecutionParams{}, "A call ended without a result, or was denied."),

		request(MethodFileStat, FileParams{}, FileResult{}, "Describes one file; links at the end are not followed."),
		request(MethodReadDirectory, FileParams{}, DirectoryResult{}, "Lists a directory."),
		request(MethodFileRead, FileReadParams{}, FileReadResult{}, "Reads bytes of a file."),
		request(MethodFileWrite, FileWriteParams{}, FileResult{}, "Replaces a file atomically."),

		request(MethodProcessStart, ProcessStartParams{}, ProcessResult{}, "Starts a background process."),
		request(MethodProcessList, SessionParams{}, ProcessListResult{}, "Lists a session's processes."),
		request(MethodProcessGet, ProcessParams{}, ProcessResult{}, "Returns one process."),
		request(MethodProcessStop, ProcessParams{}, ProcessResult{}, "Ends a process group: SIGTERM, after 2 s SIGKILL."),
		request(MethodProcessSignal, ProcessSignalParams{}, ProcessResult{}, "Sends a signal to a process group."),
		request(MethodProcessWrite, ProcessWriteParams{}, ProcessResult{}, "Writes to a process's standard input."),
		request(MethodProcessCloseStdin, ProcessParams{}, ProcessResult{}, "Closes a process's standard input."),
		request(MethodProcessResize, ProcessResizeParams{}, ProcessResult{}, "Sets the size of a process's terminal."),
		request(MethodProcessRead, ProcessReadParams{}, ProcessReadResult{}, "Reads output of a process."),
		request(MethodProcessWait, ProcessWaitParams{}, ProcessWaitResult{}, "Waits for a process to end."),
		request(MethodProcessSubscribe, ProcessSubscribeParams{}, ProcessSubscribeResult{}, "Asks for a process's output as it comes."),
		request(MethodProcessUnsubscribe, ProcessParams{}, Empty{}, "Ends a subscription."),
		event(MethodProcessEvent, ProcessEventParams{}, "A process changed."),
		event(MethodProcessOutput, ProcessOutputParams{}, "A piece of a subscribed process's output."),

		request(MethodArtifactPublish, ArtifactPublishParams{}, ArtifactPublished{}, "Publishes a file as an immutable artifact."),
		request(MethodArtifactList, ArtifactListParams{}, ArtifactListResult{}, "Lists artifacts."),
		request(MethodArtifactRead, ArtifactReadParams{}, ArtifactReadResult{}, "Reads bytes of an artifact."),
		request(MethodArtifactPreview, ArtifactPreviewParams{}, Preview{}, "Makes a preview of an artifact."),
		request(MethodArtifactSave, ArtifactSaveParams{}, Empty{}, "Writes an artifact to a file of the host."),
		request(MethodArtifactDelete, ArtifactDeleteParams{}, Empty{}, "Removes an artifact."),
		event(MethodArtifactPublished, ArtifactPublished{}, "An artifact was published."),
		event(MethodArtifactChanged, Empty{}, "The list of artifacts has changed."),

		request(MethodJobRun, JobRunParams{}, JobRunResult{}, "Runs one command to its end and collects what it left."),
		request(MethodCodeRun, CodeRunParams{}, CodeRunResult{}, "Runs a program that calls tools."),
	}
}
