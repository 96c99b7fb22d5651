/** The data of `fs/stat`, `fs/read_directory` and `fs/write_file`, whose content is the body. */
export interface FilePath {
  readonly path: string;
}

/** The data of `fs/read_file`, whose reply's body is the content. */
export interface FileRange {
  readonly path: string;
  /** In bytes. */
  readonly offset: number;
  /** In bytes; below 0 means to the end. */
  readonly length: number;
}

/** The reply to `fs/stat` and `fs/write_file`. */
export interface FileInfo {
  readonly name: string;
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  /** In bytes. */
  readonly size: number;
  /** Four octal digits, such as `0644`. */
  readonly mode: string;
  /** RFC 3339. */
  readonly mtime: string;
}

/** The reply to `fs/read_directory`. */
export interface Directory {
  readonly entries: readonly FileInfo[];
}
