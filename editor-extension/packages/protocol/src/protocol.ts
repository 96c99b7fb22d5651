// Generated from the Go types in rpc/protocol by make generate. Do not edit.

/** The version of the protocol that these types are of. */
export const protocolVersion = 1;

/** Actor is who makes a call inside a session. A side chat is always read_only. */
export interface Actor {
  id: string;
  kind: ActorKind;
}

/** ActorKind is what sort of agent acts. */
export type ActorKind = "main" | "subagent" | "side_chat";

/** Artifact describes one published artifact. It is immutable. */
export interface Artifact {
  /** id names the content: "sha256:" and 64 hex digits. */
  id: string;
  sessionId: string;
  name: string;
  mediaType: string;
  size: number;
  createdAt: string;
  source: ArtifactSource;
  /** uri names this publication: caisson-artifact:/<session>/<id>/<name>. */
  uri: string;
}

/** ArtifactDeleteParams removes one publication. */
export interface ArtifactDeleteParams {
  uri: string;
}

/** ArtifactListParams filters artifact/list; empty means all sessions. */
export interface ArtifactListParams {
  sessionId?: string;
}

/** ArtifactListResult is the answer to artifact/list, oldest first. */
export interface ArtifactListResult {
  artifacts: Artifact[];
}

/** ArtifactPreviewParams asks for a preview of a content. */
export interface ArtifactPreviewParams {
  id: string;
  /** maxBytes bounds the text or data; missing is 256 KiB, at most 4 MiB. */
  maxBytes?: number;
}

/** ArtifactPublishParams publishes a file of a session's environment. */
export interface ArtifactPublishParams {
  sessionId: string;
  path: string;
}

/**
 * ArtifactPublished is the answer to artifact/publish, and what
 * artifact/published tells.
 */
export interface ArtifactPublished {
  artifact: Artifact;
  preview: Preview;
}

/** ArtifactReadParams says which bytes of a content to read. */
export interface ArtifactReadParams {
  id: string;
  offset?: number;
  /** length is at most, and when missing, 16 MiB. */
  length?: number;
}

/** ArtifactReadResult is the answer to artifact/read. */
export interface ArtifactReadResult {
  data: string;
  offset: number;
  eof: boolean;
}

/** ArtifactSaveParams writes a content to a file of the host. */
export interface ArtifactSaveParams {
  id: string;
  /** path is absolute, and its directory exists. */
  path: string;
  /** overwrite replaces a file that exists. */
  overwrite?: boolean;
}

/** ArtifactSource says where an artifact came from. */
export interface ArtifactSource {
  path: string;
  profile: string;
}

/** BackendInfo says what this build and this machine can do with one backend. */
export interface BackendInfo {
  kind: string;
  /** built says that this build has it, usable that it can be used now. */
  built: boolean;
  usable: boolean;
  detail?: string;
  hint?: string;
}

/** BackendListResult is the answer to backend/list. */
export interface BackendListResult {
  backends: BackendInfo[];
}

/**
 * BackendPruneParams bounds what backend/prune removes. Only resources whose
 * owner is proven gone are touched, never another host's.
 */
export interface BackendPruneParams {
  /** backend is the one kind to look at; missing means all. */
  backend?: string;
  /** dryRun only lists. */
  dryRun?: boolean;
  olderThan?: Duration;
}

/** BackendPruneResult is what was, or with dryRun would be, removed. */
export interface BackendPruneResult {
  resources: Resource[];
  /** unreached says of each engine or machine that could not be looked at why. */
  unreached?: string[];
}

/**
 * CancelParams cancels a request. The request still gets exactly one answer:
 * its result when it finished first, otherwise an error of kind cancelled, and
 * only when its work has really stopped.
 */
export interface CancelParams {
  id: Token;
}

/** Check is one thing that was tried. */
export interface Check {
  name: string;
  ok: boolean;
  detail: string;
  hint?: string;
}

/** ClientCapabilities are what the client can do. What is missing is false. */
export interface ClientCapabilities {
  /**
   * guardConfirm: the client answers guard/confirm. Without it what needs
   * confirmation is denied.
   */
  guardConfirm?: boolean;
  /** toolInvoke: the client answers tool/invoke. */
  toolInvoke?: boolean;
  /** processOutput: the client wants process/output of what it subscribes to. */
  processOutput?: boolean;
  /** executionEvents: the client wants execution/started, completed and failed. */
  executionEvents?: boolean;
  /** progress: the client shows $/progress for requests with a workDoneToken. */
  progress?: boolean;
  /**
   * previewMaxBytes bounds the previews that artifact/published carries;
   * 0 is the service's choice.
   */
  previewMaxBytes?: number;
}

/** ClientInfo names the client, for logs. */
export interface ClientInfo {
  name: string;
  version?: string;
}

/** Code is the numeric code of an error answer. */
export type Code = number;

/** CodeRunParams runs a program that calls tools. */
export interface CodeRunParams {
  sessionId: string;
  code: string;
  /**
   * tools are the tools that the program may call; missing means all, those that
   * the client offered included. An empty list is none.
   */
  tools?: string[];
  /** timeoutMs is the environment's when missing, and never longer. */
  timeoutMs?: number;
  resultView?: ResultView;
  /** What follows is as in tool/call, and holds for the program's calls too. */
  callId?: string;
  actor?: Actor;
  permissionMode?: PermissionMode;
  runId?: string;
  nodeName?: string;
  workDoneToken?: Token;
}

/**
 * CodeRunResult is the answer to code/run. A program that fails or times out is
 * an answer with error.
 */
export interface CodeRunResult {
  logs: string[];
  value: unknown;
  error?: string;
  media?: Content[];
  callSummary?: unknown;
}

/**
 * ConfigChangedParams tells that the user's configuration file has changed: new
 * sessions use it, others keep what they are bound to.
 */
export interface ConfigChangedParams {
  /** problem is what is wrong with it; then no new session opens. */
  problem?: string;
}

/** ConstraintScope says which calls a session's constraints apply to. */
export type ConstraintScope = "tools" | "jobs" | "all";

/**
 * Constraints tighten what a session or a call may do. What cannot be applied
 * where it stands is an error, never ignored.
 */
export interface Constraints {
  /** timeout bounds one call. */
  timeout?: Duration;
  /** maxOutputBytes bounds what one command returns. */
  maxOutputBytes?: number;
  filesystem?: Filesystem;
  scope?: ConstraintScope;
  network?: string;
  memory?: Size;
  cpus?: number;
  cpuTime?: Duration;
  image?: string;
  tmpfsNoexec?: boolean;
  profile?: string;
}

/** Content is one piece of a result, as in MCP. */
export interface Content {
  type: ContentType;
  /** text stands in text. */
  text?: string;
  /** data, in base64, stands in image and audio. */
  data?: string;
  mimeType?: string;
  /** uri and name stand in resource_link. */
  uri?: string;
  name?: string;
  /** resource stands in resource. */
  resource?: EmbeddedResource;
  /** artifact stands in a part that present_artifact made. */
  artifact?: unknown;
}

/** ContentType is the type of one piece of a result. */
export type ContentType = "text" | "image" | "audio" | "resource" | "resource_link";

/** Decision is yes or no. */
export type Decision = "allow" | "deny";

/** DirectoryResult is the answer to fs/readDirectory, sorted by name. */
export interface DirectoryResult {
  entries: FileInfo[];
}

/**
 * Duration is a time span, written as a Go duration ("1m30s"); a number of
 * seconds is read too.
 */
export type Duration = string | number;

/**
 * EmbeddedResource is a resource with its contents; one of text and blob, in
 * base64, stands.
 */
export interface EmbeddedResource {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}

/** Empty is a result or a parameter that says nothing: {}. */
export type Empty = Record<string, never>;

/** Encoding is how bytes stand in a string. */
export type Encoding = "utf8" | "base64";

/** Error is an error answer, and how a client of this protocol returns one. */
export interface Error {
  code: Code;
  /** message is one sentence that a person can act on. */
  message: string;
  data?: ErrorData;
}

/** ErrorData is the data member of an error answer. */
export interface ErrorData {
  /**
   * kind classifies the error. It is missing where JSON-RPC's own code says
   * all: bad JSON, a bad envelope, an unknown method, bad parameters, a
   * request at the wrong time.
   */
  kind?: Kind;
  /** retryable says that the same request may succeed later and did nothing now. */
  retryable: boolean;
  /**
   * outcomeUnknown says that the request may have taken effect: it was on its
   * way when the connection was lost, or did not stop when it was cancelled.
   */
  outcomeUnknown?: boolean;
  /** hint says what to do next. */
  hint?: string;
  /** backend, profile and sessionId say where it happened. */
  backend?: string;
  profile?: string;
  sessionId?: string;
  /**
   * path is what the error is about. With CodeInvalidParams that is always the
   * member of the parameters, such as "path" or "constraints.timeout", whose file
   * stands in the message; otherwise the file, or the member of a configuration.
   */
  path?: string;
  /** reason says what stopped a WebAssembly guest, with KindGuestFailed. */
  reason?: Reason;
  /**
   * fuelRemaining is what was left of a guest's fuel, in instructions; it is there
   * with KindGuestFailed, and with KindTimeout where a guest ran.
   */
  fuelRemaining?: number;
}

/**
 * ExecutionParams is what execution/started, execution/completed and
 * execution/failed tell: exactly one started and one terminal event for each
 * call, denials included.
 */
export interface ExecutionParams {
  sessionId: string;
  callId: string;
  runId?: string;
  nodeName?: string;
  /** tool is the tool's name, or "process.start", "shell.job" or "code.run". */
  tool: string;
  profile: string;
  backend: string;
  actor: Actor;
  startedAt: string;
  /** durationMs stands in the terminal events. */
  durationMs?: number;
  /** failure stands in execution/failed. */
  failure?: Failure;
}

/** Failure is why a call failed. */
export interface Failure {
  /** kind is missing for arguments that the tool could not understand. */
  kind?: Kind;
  message: string;
}

/**
 * FileInfo describes one entry. A name that is not valid UTF-8 stands as
 * "bytes:" and percent-encoding, and is accepted that way.
 */
export interface FileInfo {
  name: string;
  path: string;
  type: FileType;
  size: number;
  /** as "0644" */
  mode: string;
  mtime: string;
}

/** FileParams names a file of a session's environment, as tools do. */
export interface FileParams {
  sessionId: string;
  /** path is relative to the root, or absolute below it; "" is the root. */
  path: string;
}

/** FileReadParams says what fs/readFile returns. */
export interface FileReadParams {
  sessionId: string;
  path: string;
  offset?: number;
  /**
   * length is at most how many bytes; missing means to the end, and never
   * more than 16 MiB.
   */
  length?: number;
}

/** FileReadResult is the answer to fs/readFile. */
export interface FileReadResult {
  data: string;
  offset: number;
  /** eof says that the data reaches the end of the file. */
  eof: boolean;
}

/** FileResult describes one file. */
export interface FileResult {
  file: FileInfo;
}

/** FileType is what an entry is; links are not followed. */
export type FileType = "file" | "directory" | "symlink" | "other";

/** FileWriteParams replaces a file atomically, or makes it. */
export interface FileWriteParams {
  sessionId: string;
  path: string;
  /** data is the whole content, at most 16 MiB. */
  data: string;
}

/** Filesystem is what commands may write. */
export type Filesystem = "read_only";

/**
 * GuardConfirmParams asks a person whether a call may run. An error, or no
 * answer in time, means no.
 */
export interface GuardConfirmParams {
  sessionId: string;
  callId: string;
  tool: string;
  arguments: RawObject;
  reason: string;
}

/** GuardConfirmResult is the person's answer. */
export interface GuardConfirmResult {
  decision: Decision;
  /** remember "session" keeps the decision for the session. */
  remember?: Remember;
}

/** Health is what a check found. */
export interface Health {
  ok: boolean;
  checks: Check[];
  durationMs: number;
}

/**
 * InitializationOptions say where the service keeps its things. Paths are
 * absolute.
 */
export interface InitializationOptions {
  /** configPath is the user's configuration file. */
  configPath?: string;
  /** stateDir holds sessions, dataDir artifacts. */
  stateDir?: string;
  dataDir?: string;
}

/** InitializeParams begins a connection. */
export interface InitializeParams {
  /**
   * processId is the process that started the service, or null. The service
   * begins its bounded shutdown within 2 s of that process dying.
   */
  processId: number | null;
  clientInfo?: ClientInfo;
  workspaceFolders?: WorkspaceFolder[];
  capabilities?: ClientCapabilities;
  /** initializationOptions say where the service keeps its things; everything has a default. */
  initializationOptions?: InitializationOptions;
  trace?: TraceValue;
}

/** InitializeResult is the service's answer to initialize. */
export interface InitializeResult {
  protocolVersion: number;
  serverInfo: ServerInfo;
  capabilities: ServerCapabilities;
  /** configPath is the user's configuration file, which need not be there. */
  configPath?: string;
}

/** InputFile is a file's content; one of its members stands. */
export interface InputFile {
  text?: string;
  base64?: string;
}

/**
 * JobRunParams runs one command to its end, in a fresh directory of an
 * environment unless cwd says where. One of sessionId and profile stands, and
 * one of argv and script.
 */
export interface JobRunParams {
  sessionId?: string;
  profile?: string;
  /** argv is run without a shell. */
  argv?: string[];
  script?: Script;
  /**
   * inputFiles are put into the directory, by their paths, which are relative,
   * have slashes and stay inside. They may be programs.
   */
  inputFiles?: Record<string, InputFile>;
  /**
   * cwd is a directory of the workspace. Nothing is removed there, and only what
   * collect names comes back.
   */
  cwd?: string;
  /** stdin is all that the program reads from its standard input. */
  stdin?: string;
  env?: Record<string, string>;
  actor?: Actor;
  permissionMode?: PermissionMode;
  constraints?: Constraints;
  /** encoding is of the output; utf8 when missing. */
  encoding?: Encoding;
  /**
   * collect are globs of what comes back as artifacts, relative to the directory
   * ("*.csv", "out/**"); missing means all that the job left. Input files and the
   * script never do, changed or not.
   */
  collect?: string[];
  /** callId, runId and nodeName are as in tool/call. */
  callId?: string;
  runId?: string;
  nodeName?: string;
  workDoneToken?: Token;
}

/** JobRunResult is the answer to job/run. */
export interface JobRunResult {
  stdout: string;
  stderr: string;
  encoding: Encoding;
  /** lossy says that the output held what is no UTF-8. */
  lossy?: boolean;
  /** exitCode is -1 where a signal ended the program, which signal names then. */
  exitCode: number;
  signal?: string;
  /** timedOut says that the job was killed at its time limit. */
  timedOut: boolean;
  /** truncated says that more was written than is returned. */
  truncated: boolean;
  artifacts: Artifact[];
  /**
   * filesDropped counts files that the job left and that are no artifacts,
   * because there were too many, or they were too large.
   */
  filesDropped?: number;
  /** fuelRemaining is what was left of a WebAssembly module's fuel. */
  fuelRemaining?: number;
}

/** Kind classifies an error for whoever has to act on it. */
export type Kind =
  | "sessionNotFound"
  | "sessionBusy"
  | "profileNotFound"
  | "configInvalid"
  | "backendUnavailable"
  | "protocolMismatch"
  | "environmentLost"
  | "outcomeUnknown"
  | "toolNotFound"
  | "unsupported"
  | "denied"
  | "rateLimited"
  | "budgetExhausted"
  | "timeout"
  | "artifactTooLarge"
  | "artifactNotFound"
  | "processNotFound"
  | "pathOutsideRoot"
  | "guestFailed"
  | "overloaded"
  | "cancelled"
  | "internal";

/** LogMessageParams is one line of the service's log. */
export interface LogMessageParams {
  type: MessageType;
  message: string;
}

/** LogTraceParams is one line of trace. */
export interface LogTraceParams {
  message: string;
  /** verbose stands only when the trace is verbose. */
  verbose?: string;
}

/** MessageType is how grave a log message is, as in the language server protocol. */
export type MessageType = 1 | 2 | 3 | 4;

/** OfferedTool is one tool of the client's own. */
export interface OfferedTool {
  name: string;
  description: string;
  inputSchema: RawObject;
}

/** Owner is the agent that started a process. */
export interface Owner {
  kind: ActorKind;
  id: string;
}

/** PermissionMode is what a command may write. */
export type PermissionMode = "read_only" | "standard" | "unconfined";

/** Preview is a bounded look at an artifact. */
export interface Preview {
  kind: PreviewKind;
  mediaType: string;
  /** text is the content as UTF-8, for every kind but image and binary. */
  text?: string;
  /** encoding is what text was decoded from, such as "utf-16le". */
  encoding?: string;
  /** data is the whole image, when it fits. */
  data?: string;
  /** width and height are an image's, in pixels. */
  width?: number;
  height?: number;
  /** truncated says that text ends early or data was left out. */
  truncated: boolean;
}

/** PreviewKind is how a preview is best shown. */
export type PreviewKind = "text" | "image" | "markdown" | "json" | "csv" | "binary";

/** Process is one background process of a session. */
export interface Process {
  /** id is made by the service and unique in it. */
  id: string;
  sessionId: string;
  operationId?: string;
  command: string;
  argv?: string[];
  cwd: string;
  status: ProcessStatus;
  pid?: number;
  /** exitCode is missing until it is known, and for a process that a signal ended. */
  exitCode?: number;
  /** signal is the signal that ended it, such as "SIGKILL". */
  signal?: string;
  /**
   * cause is "natural_exit" or "requested_stop" of a process that has ended,
   * where it is known.
   */
  cause?: string;
  /** reason is why it failed or was lost, or was killed for want of memory. */
  reason?: string;
  tty?: TTY;
  owner: Owner;
  label?: string;
  startedAt: string;
  endedAt?: string;
  /** totalBytes counts all output ever written. */
  totalBytes: number;
  /** outputClosed says that the last output byte is in. */
  outputClosed: boolean;
  environment: ProcessEnvironment;
}

/** ProcessEnvironment names where a process runs. */
export interface ProcessEnvironment {
  profile: string;
  backend: string;
  id: string;
}

/** ProcessEventParams is one change of one process. */
export interface ProcessEventParams {
  type: ProcessEventType;
  /** cause is "natural_exit" or "requested_stop", where it is known. */
  cause?: string;
  process: Process;
}

/** ProcessEventType says what happened to a process. */
export type ProcessEventType = "started" | "updated" | "exited" | "closed" | "lost";

/** ProcessListResult is the answer to process/list, oldest first. */
export interface ProcessListResult {
  processes: Process[];
}

/**
 * ProcessOutputParams is a piece of a subscribed process's output, or a gap.
 * Each begins where the last one ended, the first where the answer to
 * process/subscribe says, which comes before it.
 */
export interface ProcessOutputParams {
  sessionId: string;
  processId: string;
  offset: number;
  data?: string;
  /**
   * gap says that the output from offset up to nextOffset is left out; what
   * is still kept of it can be had with process/read.
   */
  gap?: boolean;
  nextOffset?: number;
  /** eof says that the output ended here and the subscription with it. */
  eof?: boolean;
  /** error is why the subscription ended early. */
  error?: SessionError;
}

/** ProcessParams names a process. */
export interface ProcessParams {
  sessionId: string;
  processId: string;
}

/**
 * ProcessReadParams says which output to read: forward from offset, or without
 * it the last tailBytes (missing: as many as maxBytes).
 */
export interface ProcessReadParams {
  sessionId: string;
  processId: string;
  offset?: number;
  tailBytes?: number;
  /** maxBytes is 32768 when missing, and at most 8 MiB. */
  maxBytes?: number;
  /** waitMs is how long to wait for output at offset, at most 60 000. */
  waitMs?: number;
  /** encoding is utf8 when missing. */
  encoding?: Encoding;
}

/** ProcessReadResult is a piece of a process's output. */
export interface ProcessReadResult {
  data: string;
  encoding: Encoding;
  /** lossy says that invalid bytes came as U+FFFD. */
  lossy?: boolean;
  /**
   * startOffset and endOffset bound the piece, as offsets into all output
   * ever written; the next read continues at endOffset.
   */
  startOffset: number;
  endOffset: number;
  totalBytes: number;
  /**
   * truncated says that output before startOffset was asked for and is no
   * longer kept.
   */
  truncated: boolean;
  /** timedOut says that WaitMs passed without output. */
  timedOut: boolean;
  /** eof says that endOffset is the end and no more will come. */
  eof: boolean;
  process: Process;
}

/** ProcessResizeParams sets the size of a process's terminal. */
export interface ProcessResizeParams {
  sessionId: string;
  processId: string;
  cols: number;
  rows: number;
}

/** ProcessResult carries one process. */
export interface ProcessResult {
  process: Process;
}

/** ProcessSignalParams sends a signal to a process group. */
export interface ProcessSignalParams {
  sessionId: string;
  processId: string;
  /** signal is a name such as "SIGINT", or a key of its terminal such as "^C". */
  signal: string;
}

/**
 * ProcessStartParams asks for a background process. Exactly one of command, a
 * shell line, and argv stands. The same operationId with the same parameters
 * gives the same process, with others an error.
 */
export interface ProcessStartParams {
  sessionId: string;
  command?: string;
  argv?: string[];
  /** cwd is a directory of the environment; missing is the root. */
  cwd?: string;
  /** env adds to the session's variables. */
  env?: Record<string, string>;
  /** tty gives the process a terminal of this size. */
  tty?: TTY;
  operationId?: string;
  label?: string;
  actor?: Actor;
  permissionMode?: PermissionMode;
  /** callId, runId and nodeName are those of the start's events. */
  callId?: string;
  runId?: string;
  nodeName?: string;
}

/** ProcessStatus is where a process is in its life. */
export type ProcessStatus = "starting" | "running" | "stopping" | "exited" | "failed" | "lost";

/**
 * ProcessSubscribeParams asks for a process's output as process/output. One
 * connection has at most one subscription to a process; another request
 * replaces it.
 */
export interface ProcessSubscribeParams {
  sessionId: string;
  processId: string;
  /** fromOffset is where to begin; missing is where the output ends now. */
  fromOffset?: number;
}

/** ProcessSubscribeResult is the answer to process/subscribe. */
export interface ProcessSubscribeResult {
  /** offset is where the first process/output begins, unless a gap comes first. */
  offset: number;
  process: Process;
}

/** ProcessWaitParams waits for a process to end. */
export interface ProcessWaitParams {
  sessionId: string;
  processId: string;
  /** timeoutMs is at most 60 000, which it is when missing; 0 does not wait. */
  timeoutMs?: number;
}

/** ProcessWaitResult is the answer to process/wait. */
export interface ProcessWaitResult {
  process: Process;
  /** timedOut says that it still runs. */
  timedOut: boolean;
}

/** ProcessWriteParams writes to a process's standard input or terminal. */
export interface ProcessWriteParams {
  sessionId: string;
  processId: string;
  data: string;
  /** encoding is utf8 when missing. */
  encoding?: Encoding;
}

/** ProfileCheckParams asks to really try a profile. */
export interface ProfileCheckParams {
  profile: string;
}

/**
 * ProfileInfo describes one profile of the user's configuration. "local"
 * always exists.
 */
export interface ProfileInfo {
  name: string;
  backend: string;
  /** summary is one line for a person. */
  summary: string;
  valid: boolean;
  /** problem is why a session on it cannot be opened. */
  problem?: string;
}

/** ProfileListResult is the answer to profile/list. */
export interface ProfileListResult {
  /** default is the profile of a session that names none. */
  default: string;
  profiles: ProfileInfo[];
}

/** ProgressKind is where in its life a progress is. */
export type ProgressKind = "begin" | "report" | "end";

/** ProgressParams tells how a request that carried a workDoneToken gets on. */
export interface ProgressParams {
  token: Token;
  value: ProgressValue;
}

/** ProgressValue is one step: begin first, then any number of report, then end. */
export interface ProgressValue {
  kind: ProgressKind;
  /** title stands in begin. */
  title?: string;
  message?: string;
}

/** RawObject is one JSON object that is passed on undecoded. */
export type RawObject = Record<string, unknown>;

/** Reason says what stopped a WebAssembly guest. */
export type Reason = "outOfFuel" | "outOfMemory" | "stackOverflow" | "trap" | "outputLimit";

/** Remember is for how long a decision counts. */
export type Remember = "session";

/** Resource is something that a backend made. */
export interface Resource {
  backend: string;
  /** container, volume, directory, ... */
  kind: string;
  id: string;
  environmentId?: string;
  sessionId?: string;
  createdAt: string;
  reason: string;
}

/** ResultView is what a program sees of a tool's result. */
export type ResultView = "content" | "structured";

/** Script is a program text and what runs it. */
export interface Script {
  interpreter: string;
  source: string;
}

/**
 * ServerCapabilities are what this build of the service can do. A client checks
 * a capability before it uses what it names.
 */
export interface ServerCapabilities {
  /** backends are the kinds of environments that this build has. */
  backends: string[];
  maxMessageBytes: number;
  maxArtifactBytes: number;
  /** fileSystem: fs/*. */
  fileSystem: boolean;
  /** sessionFork: session/fork. */
  sessionFork: boolean;
  /** processTty: process/start with tty, and process/resize. */
  processTty: boolean;
  /** processSubscribe: process/subscribe and process/output. */
  processSubscribe: boolean;
  /** jobs: job/run. */
  jobs: boolean;
  /** programs: code/run, tool/offer and tool/invoke. */
  programs: boolean;
  /** guardConfirm: the service asks with guard/confirm where a rule says so. */
  guardConfirm: boolean;
}

/** ServerInfo names the service. */
export interface ServerInfo {
  name: string;
  version: string;
}

/**
 * Session is what an editor works in: bound for good to one execution
 * environment.
 */
export interface Session {
  id: string;
  /** workspace is the URI of the opened folder, or null. */
  workspace: string | null;
  profile: string;
  backend: string;
  environmentId: string;
  /**
   * root is the workspace as paths inside the environment see it; empty until
   * the environment was opened once.
   */
  root: string;
  state: SessionState;
  /** shared: other sessions of the profile use the same environment. */
  shared: boolean;
  /** persistent: files outlive the environment's idle limit. */
  persistent: boolean;
  /** parentId is the session that this one was forked from, which may be gone. */
  parentId?: string;
  createdAt: string;
  lastUsedAt: string;
  labels?: Record<string, string>;
  /**
   * heldBy is the process id of another service that has the session open: here it
   * cannot be opened until that one gives it up, and its state is as it was saved.
   */
  heldBy?: number;
  /** error says why a session is disconnected or failed. */
  error?: SessionError;
}

/** SessionChangedParams tells that a session is not as it was. */
export interface SessionChangedParams {
  session: Session;
}

/** SessionDeleteParams removes a session and its environment. */
export interface SessionDeleteParams {
  sessionId: string;
  /** force forgets an environment that cannot be reached, too. */
  force?: boolean;
}

/** SessionDeleteResult is the answer to session/delete. */
export interface SessionDeleteResult {
  /**
   * left says what may have been left behind: by a forced deletion, and in an
   * environment that stays and was not reached.
   */
  left?: string;
}

/** SessionError is why a session cannot be used now. */
export interface SessionError {
  kind: Kind;
  message: string;
  hint?: string;
}

/**
 * SessionForkParams asks for a session of the profile that another one was bound
 * to, whatever the configuration says now, with an environment of its own, into
 * which nothing is copied, unless the profile is shared.
 */
export interface SessionForkParams {
  /** sessionId is the session that is forked; it need not be open. */
  sessionId: string;
  /**
   * newSessionId names the new session, and must not exist. Missing: the
   * service makes one.
   */
  newSessionId?: string;
  workDoneToken?: Token;
}

/** SessionListParams filters session/list; empty means all. */
export interface SessionListParams {
  state?: SessionState;
  /** label must be on the session: "name" with any value, or "name=value". */
  label?: string;
}

/** SessionListResult is the answer to session/list, newest use first. */
export interface SessionListResult {
  sessions: Session[];
}

/**
 * SessionOpenParams makes a session, or resumes the one of that id with its
 * saved binding, whatever the configuration says now.
 */
export interface SessionOpenParams {
  /**
   * sessionId resumes the session, or names the new one: one path component
   * of at most 64 letters, digits, "_", "-" and ".". Missing: the service
   * makes one.
   */
  sessionId?: string;
  /**
   * workspace is the file URI of the opened folder; null is a session that
   * belongs to no folder, which is local unless it names a profile.
   */
  workspace: string | null;
  /**
   * profile is the profile of a new session; missing means the default. For
   * a session that exists, another one than it has is an error.
   */
  profile?: string;
  /** constraints tighten the session for good. */
  constraints?: Constraints;
  /** labels are kept and never interpreted: at most 32 of at most 256 bytes. */
  labels?: Record<string, string>;
  /** connect false saves the binding without opening the environment. */
  connect?: boolean;
  workDoneToken?: Token;
}

/** SessionOpenResult is the answer to session/open. */
export interface SessionOpenResult {
  session: Session;
  /** resumed says that the session existed. */
  resumed: boolean;
}

/** SessionParams names a session. */
export interface SessionParams {
  sessionId: string;
}

/** SessionRemovedParams tells that there is a session no more. */
export interface SessionRemovedParams {
  sessionId: string;
}

/** SessionResult carries one session. */
export interface SessionResult {
  session: Session;
}

/** SessionState is where a session is in its life. */
export type SessionState = "bound" | "connecting" | "ready" | "disconnected" | "closed" | "failed";

/** SetTraceParams sets how much $/logTrace tells. */
export interface SetTraceParams {
  value: TraceValue;
}

/** Size is a number of bytes; text with a binary unit ("512m", "2g") is read too. */
export type Size = number | string;

/** TTY is the size of a terminal in character cells. */
export interface TTY {
  cols: number;
  rows: number;
}

/**
 * Token names a request or its progress: a string or an integer, kept as it
 * was written.
 */
export type Token = string | number;

/** Tool is one tool that a session offers. */
export interface Tool {
  name: string;
  group: ToolGroup;
  description: string;
  inputSchema: RawObject;
  annotations: ToolAnnotations;
  /** profile is the profile whose environment runs it. */
  profile: string;
}

/** ToolAnnotations are hints for whoever decides about a call. */
export interface ToolAnnotations {
  readOnly: boolean;
  destructive: boolean;
}

/** ToolCallParams asks for one tool call. */
export interface ToolCallParams {
  sessionId: string;
  name: string;
  /**
   * arguments are the tool's own; they travel undecoded to where it runs. Unlike
   * members of parameters, one that a built-in tool does not know is refused, in
   * a result with isError that names the nearest one: nothing was done then.
   */
  arguments: RawObject;
  /** callId names the call in events; missing: the service makes one. */
  callId?: string;
  /** actor is who calls; missing: the session's main agent. */
  actor?: Actor;
  /**
   * permissionMode asks for a mode; missing: the profile's. Above the
   * profile's ceiling it is denied.
   */
  permissionMode?: PermissionMode;
  constraints?: Constraints;
  /** runId and nodeName are passed through to the events. */
  runId?: string;
  nodeName?: string;
  workDoneToken?: Token;
}

/**
 * ToolCallResult is the answer to tool/call: the shape of an MCP tool result,
 * so that a client can pass it on as it is.
 */
export interface ToolCallResult {
  content: Content[];
  /**
   * structuredContent is the tool's result as an object; its members are the
   * tool's own.
   */
  structuredContent?: RawObject;
  /** isError says that the tool failed in a way that its caller may correct. */
  isError?: boolean;
  meta: ToolMeta;
}

/** ToolGroup is the family that a tool belongs to. */
export type ToolGroup =
  | "file"
  | "search"
  | "shell"
  | "git"
  | "process"
  | "artifact"
  | "code"
  | "plugins";

/** ToolInvokeParams asks the client to run a tool that it offered. */
export interface ToolInvokeParams {
  sessionId: string;
  name: string;
  arguments: RawObject;
}

/** ToolInvokeResult is the client's answer. */
export interface ToolInvokeResult {
  content: Content[];
  structuredContent?: RawObject;
  isError?: boolean;
}

/** ToolListResult is the answer to tool/list. */
export interface ToolListResult {
  tools: Tool[];
}

/** ToolMeta says where and for how long a call ran. */
export interface ToolMeta {
  callId: string;
  backend: string;
  profile: string;
  durationMs: number;
  /** fuelRemaining is what was left of a WebAssembly tool's fuel, in instructions. */
  fuelRemaining?: number;
  /** tool is what the tool itself said beside its result. */
  tool?: unknown;
}

/** ToolOfferParams offers the client's own tools to programs (code/run). */
export interface ToolOfferParams {
  sessionId: string;
  tools: OfferedTool[];
}

/** TraceValue is how much $/logTrace tells. */
export type TraceValue = "off" | "messages" | "verbose";

/** WorkspaceFolder is one opened folder. */
export interface WorkspaceFolder {
  uri: string;
  name?: string;
}

/** The numeric codes of error answers. ErrorData.kind says more. */
export const ErrorCodes = {
  /** the body is not JSON; the answer's id is null */
  Parse: -32700,
  /** not a request, too long, or not now (a second initialize, anything after shutdown) */
  InvalidRequest: -32600,
  /** no such method */
  MethodNotFound: -32601,
  /** bad parameters; data.path names the member */
  InvalidParams: -32602,
  /** a fault of the service */
  Internal: -32603,
  /** a request before initialize */
  NotInitialized: -32002,
  /** the request was cancelled, and its work has stopped */
  Cancelled: -32800,
  /** too many requests at once; try again */
  Overloaded: -32001,
  SessionNotFound: -32010,
  SessionBusy: -32011,
  ProfileNotFound: -32012,
  ConfigInvalid: -32013,
  BackendUnavailable: -32014,
  ProtocolMismatch: -32015,
  EnvironmentLost: -32016,
  OutcomeUnknown: -32017,
  ToolNotFound: -32018,
  Unsupported: -32019,
  Denied: -32020,
  RateLimited: -32021,
  BudgetExhausted: -32022,
  Timeout: -32023,
  ArtifactTooLarge: -32024,
  ArtifactNotFound: -32025,
  ProcessNotFound: -32026,
  PathOutsideRoot: -32027,
  GuestFailed: -32028,
} as const;

/** Requests that a client makes, by method. */
export interface ClientRequests {
  /** Begins the connection; nothing else is answered before it. */
  initialize: { params: InitializeParams; result: InitializeResult };
  /** Detaches from every environment; only exit may follow. */
  shutdown: { params: undefined; result: null };
  /** Lists the user's profiles. */
  "profile/list": { params: Empty; result: ProfileListResult };
  /** Really tries a profile. */
  "profile/check": { params: ProfileCheckParams; result: Health };
  /** Says what this build can do, and which backends are usable now. */
  "backend/list": { params: Empty; result: BackendListResult };
  /** Removes what backends left behind whose owner is proven gone. */
  "backend/prune": { params: BackendPruneParams; result: BackendPruneResult };
  /** Makes or resumes a session. */
  "session/open": { params: SessionOpenParams; result: SessionOpenResult };
  /** Returns one session. */
  "session/get": { params: SessionParams; result: SessionResult };
  /** Lists the sessions. */
  "session/list": { params: SessionListParams; result: SessionListResult };
  /** Makes a session of the profile that another one was bound to. */
  "session/fork": { params: SessionForkParams; result: SessionResult };
  /** Closes a session; a persistent environment is kept. */
  "session/close": { params: SessionParams; result: SessionResult };
  /** Closes and forgets a session and removes its environment. */
  "session/delete": { params: SessionDeleteParams; result: SessionDeleteResult };
  /** Lists what a session's environment offers. */
  "tool/list": { params: SessionParams; result: ToolListResult };
  /** Runs one tool. */
  "tool/call": { params: ToolCallParams; result: ToolCallResult };
  /** Offers the client's own tools to programs. */
  "tool/offer": { params: ToolOfferParams; result: Empty };
  /** Describes one file; links at the end are not followed. */
  "fs/stat": { params: FileParams; result: FileResult };
  /** Lists a directory. */
  "fs/readDirectory": { params: FileParams; result: DirectoryResult };
  /** Reads bytes of a file. */
  "fs/readFile": { params: FileReadParams; result: FileReadResult };
  /** Replaces a file atomically. */
  "fs/writeFile": { params: FileWriteParams; result: FileResult };
  /** Starts a background process. */
  "process/start": { params: ProcessStartParams; result: ProcessResult };
  /** Lists a session's processes. */
  "process/list": { params: SessionParams; result: ProcessListResult };
  /** Returns one process. */
  "process/get": { params: ProcessParams; result: ProcessResult };
  /** Ends a process group: SIGTERM, after 2 s SIGKILL. */
  "process/stop": { params: ProcessParams; result: ProcessResult };
  /** Sends a signal to a process group. */
  "process/signal": { params: ProcessSignalParams; result: ProcessResult };
  /** Writes to a process's standard input. */
  "process/write": { params: ProcessWriteParams; result: ProcessResult };
  /** Closes a process's standard input. */
  "process/closeStdin": { params: ProcessParams; result: ProcessResult };
  /** Sets the size of a process's terminal. */
  "process/resize": { params: ProcessResizeParams; result: ProcessResult };
  /** Reads output of a process. */
  "process/read": { params: ProcessReadParams; result: ProcessReadResult };
  /** Waits for a process to end. */
  "process/wait": { params: ProcessWaitParams; result: ProcessWaitResult };
  /** Asks for a process's output as it comes. */
  "process/subscribe": { params: ProcessSubscribeParams; result: ProcessSubscribeResult };
  /** Ends a subscription. */
  "process/unsubscribe": { params: ProcessParams; result: Empty };
  /** Publishes a file as an immutable artifact. */
  "artifact/publish": { params: ArtifactPublishParams; result: ArtifactPublished };
  /** Lists artifacts. */
  "artifact/list": { params: ArtifactListParams; result: ArtifactListResult };
  /** Reads bytes of an artifact. */
  "artifact/read": { params: ArtifactReadParams; result: ArtifactReadResult };
  /** Makes a preview of an artifact. */
  "artifact/preview": { params: ArtifactPreviewParams; result: Preview };
  /** Writes an artifact to a file of the host. */
  "artifact/save": { params: ArtifactSaveParams; result: Empty };
  /** Removes an artifact. */
  "artifact/delete": { params: ArtifactDeleteParams; result: Empty };
  /** Runs one command to its end and collects what it left. */
  "job/run": { params: JobRunParams; result: JobRunResult };
  /** Runs a program that calls tools. */
  "code/run": { params: CodeRunParams; result: CodeRunResult };
}

/** Requests that the service makes, by method. */
export interface ServerRequests {
  /** Runs a tool that the client offered. */
  "tool/invoke": { params: ToolInvokeParams; result: ToolInvokeResult };
  /** Asks a person whether a call may run. */
  "guard/confirm": { params: GuardConfirmParams; result: GuardConfirmResult };
}

/** Notifications that a client sends, by method. */
export interface ClientNotifications {
  /** Tells that the client has the answer to initialize. */
  initialized: Empty;
  /** Ends the service: exit code 0, or 1 without shutdown. */
  exit: undefined;
  /** Cancels a request of the other side. */
  "$/cancelRequest": CancelParams;
  /** Sets how much $/logTrace tells. */
  "$/setTrace": SetTraceParams;
}

/** Notifications that the service sends, by method. */
export interface ServerNotifications {
  /** Cancels a request of the other side. */
  "$/cancelRequest": CancelParams;
  /** Tells how a request gets on. */
  "$/progress": ProgressParams;
  /** One line of trace. */
  "$/logTrace": LogTraceParams;
  /** One line of the service's log. */
  "window/logMessage": LogMessageParams;
  /** The user's configuration file changed. */
  "config/changed": ConfigChangedParams;
  /** A session is not as it was. */
  "session/changed": SessionChangedParams;
  /** A session was deleted. */
  "session/removed": SessionRemovedParams;
  /** A call began. */
  "execution/started": ExecutionParams;
  /** A call ended with a result. */
  "execution/completed": ExecutionParams;
  /** A call ended without a result, or was denied. */
  "execution/failed": ExecutionParams;
  /** A process changed. */
  "process/event": ProcessEventParams;
  /** A piece of a subscribed process's output. */
  "process/output": ProcessOutputParams;
  /** An artifact was published. */
  "artifact/published": ArtifactPublished;
  /** The list of artifacts has changed. */
  "artifact/changed": Empty;
}
