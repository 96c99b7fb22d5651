import type { Session } from "@caisson/protocol";
import * as vscode from "vscode";
import { findFiles } from "../model/fileSearch.js";
import { fromPath, name, withoutIcons } from "../model/shown.js";
import { type EnvironmentFiles, environmentUri, isFolder } from "./environmentFiles.js";

/** Lets a person choose a file of the environment by its name. */
export async function pickEnvironmentFile(
  files: EnvironmentFiles,
  session: Session,
): Promise<vscode.Uri | undefined> {
  const picker = vscode.window.createQuickPick<vscode.QuickPickItem & { uri: vscode.Uri }>();
  picker.title = `Files of the environment ${session.profile}`;
  picker.placeholder = "Type a part of a file's name";
  picker.matchOnDescription = true;
  picker.busy = true;
  picker.show();
  let open = true;
  const chosen = new Promise<vscode.Uri | undefined>((resolve) => {
    picker.onDidAccept(() => {
      resolve(picker.selectedItems[0]?.uri);
      picker.hide();
    });
    picker.onDidHide(() => {
      open = false;
      resolve(undefined);
      picker.dispose();
    });
  });
  void findFiles({
    read: async (path) =>
      (await files.readDirectory(environmentUri(session, path))).map(([part, type]) => ({
        name: part,
        is: isFolder(type)
          ? type === vscode.FileType.Directory
            ? "folder"
            : "link to a folder"
          : "file",
      })),
    wanted: () => open,
    tell: (paths) => {
      picker.items = paths.map((path) => itemOf(environmentUri(session, path), path));
    },
  }).finally(() => {
    if (open) {
      picker.busy = false;
    }
  });
  return chosen;
}

function itemOf(uri: vscode.Uri, path: string) {
  return {
    label: withoutIcons(name(fromPath(path.split("/").at(-1) ?? path))),
    description: withoutIcons(name(fromPath(path))),
    iconPath: vscode.ThemeIcon.File,
    resourceUri: uri,
    uri,
  };
}
