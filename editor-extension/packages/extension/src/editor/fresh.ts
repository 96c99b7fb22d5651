import * as vscode from "vscode";

/** How often the ages in a view are shown anew, in ms. */
const interval = 20_000;

/** Shows a view anew from time to time as long as somebody looks: ages grow. */
export function keepFresh(view: vscode.TreeView<unknown>, show: () => void): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  const follow = (visible: boolean) => {
    clearInterval(timer);
    if (visible) {
      timer = setInterval(show, interval);
    }
  };
  follow(view.visible);
  const listening = view.onDidChangeVisibility(({ visible }) => follow(visible));
  return new vscode.Disposable(() => {
    clearInterval(timer);
    listening.dispose();
  });
}
