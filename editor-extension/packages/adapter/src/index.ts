export {
  type Delegate,
  type DelegateCommand,
  type DelegateOptions,
  type DelegateStreams,
  delegate,
} from "./delegate.js";
export { AdapterError, type ErrorDetail, type ErrorKind, FrameError } from "./errors.js";
export { RawJSON } from "./json.js";
export * from "./limits.js";
export * from "./methods.js";
export { type RunOptions, run } from "./run.js";
export * from "./types/code.js";
export * from "./types/files.js";
export * from "./types/initialize.js";
export * from "./types/job.js";
export * from "./types/process.js";
export * from "./types/tools.js";
