import type * as vscode from "vscode";

/** How often the selection is looked at, in ms, and how many times. */
const interval = 50;
const attempts = 100;

/**
 * The selected element of a tree. The editor knows none for a moment while the tree is
 * shown anew, which may be the moment of a click.
 */
export async function selected<T>(view: vscode.TreeView<T>): Promise<T | undefined> {
  for (let i = 0; i < attempts && view.selection.length === 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
  return view.selection[0];
}
