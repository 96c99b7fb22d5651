import type { ProfileInfo, Session } from "@caisson/protocol";
import * as vscode from "vscode";
import type { Caisson } from "../caisson.js";
import { message, withoutIcons } from "../model/shown.js";
import { ServiceError, serviceError } from "../service/errors.js";
import { folderOf, keyOf, pickFolder } from "./folders.js";
import { openingEnvironment, waitingFor } from "./progress.js";
import { sentence } from "./report.js";
import { folderName } from "./sessionTree.js";
import { confirmed } from "./yesOrNo.js";

interface ProfileItem extends vscode.QuickPickItem {
  profile?: ProfileInfo;
}

const checkButton: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("pulse"),
  tooltip: "Check whether this environment can be used now",
};

/** Lets a person choose a profile; a new session is opened on it. */
export async function chooseEnvironment(caisson: Caisson): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) {
    void vscode.window.showInformationMessage(
      "Open a folder first: a session belongs to the folder that its agents work on.",
    );
    return;
  }
  const current = caisson.sessions.ofFolder(keyOf(folder));
  const profile = await pickProfile(caisson, current);
  if (profile === undefined) {
    return;
  }
  if (!profile.valid) {
    const problem = profile.problem ?? `The profile ${profile.name} cannot be used.`;
    throw new ServiceError(problem, { kind: "configInvalid" });
  }
  const session = await openingEnvironment(`Opening ${profile.name}`, (options) =>
    caisson.sessions.openNew(keyOf(folder), { profile: profile.name, ...options }),
  );
  const left = current === undefined ? "" : `; the one on ${current.profile} stays`;
  void vscode.window.showInformationMessage(
    message(`${folder.name} has a new session on ${session.profile}${left}.`),
  );
}

async function pickProfile(
  caisson: Caisson,
  current: Session | undefined,
): Promise<ProfileInfo | undefined> {
  const picker = vscode.window.createQuickPick<ProfileItem>();
  picker.title = "Choose Environment";
  picker.placeholder =
    current === undefined
      ? "The environment of a new session"
      : `A new session is opened; the one on ${current.profile} never moves`;
  picker.matchOnDescription = true;
  picker.busy = true;
  picker.show();
  const chosen = new Promise<ProfileInfo | undefined>((resolve) => {
    picker.onDidAccept(() => {
      resolve(picker.selectedItems[0]?.profile);
      picker.hide();
    });
    picker.onDidHide(() => {
      resolve(undefined);
      picker.dispose();
    });
  });
  picker.onDidTriggerItemButton(({ item }) => void check(caisson, picker, item));
  try {
    const { profiles, default: byDefault } = await caisson.service.request("profile/list", {});
    picker.items = profiles.map((profile) => profileItem(profile, byDefault, current));
    picker.busy = false;
  } catch (thrown) {
    picker.hide();
    throw thrown;
  }
  return chosen;
}

function profileItem(
  profile: ProfileInfo,
  byDefault: string,
  current: Session | undefined,
): ProfileItem {
  const marks = [
    profile.name === byDefault ? "default" : "",
    profile.name === current?.profile ? "used now" : "",
  ].filter((mark) => mark !== "");
  return {
    label: `${profile.valid ? "$(vm)" : "$(warning)"} ${withoutIcons(profile.name)}`,
    description: withoutIcons([profile.backend, ...marks].join(" · ")),
    detail: withoutIcons(profile.valid ? profile.summary : (profile.problem ?? "")),
    buttons: profile.valid ? [checkButton] : [],
    profile,
  };
}

/** Tries a profile and shows what came of it in its line. */
async function check(
  caisson: Caisson,
  picker: vscode.QuickPick<ProfileItem>,
  item: ProfileItem,
): Promise<void> {
  const { profile } = item;
  if (profile === undefined) {
    return;
  }
  const show = (icon: string, result: string) => {
    const detail = `${icon} ${withoutIcons(result)}`;
    picker.items = picker.items.map((i) => (i.profile === profile ? { ...i, detail } : i));
  };
  show("$(sync~spin)", "Checking…");
  try {
    const health = await caisson.service.request("profile/check", { profile: profile.name });
    const bad = health.checks.find((c) => !c.ok);
    if (bad === undefined) {
      show("$(pass)", `Works: ${health.checks.length} checks in ${health.durationMs} ms`);
    } else {
      show("$(error)", `${bad.name}: ${sentence({ message: bad.detail, hint: bad.hint })}`);
    }
  } catch (thrown) {
    show("$(error)", sentence(serviceError(thrown)));
  }
}

export async function newSession(caisson: Caisson): Promise<void> {
  const folder = await pickFolder();
  if (folder !== undefined) {
    await openingEnvironment("Opening a new session", (options) =>
      caisson.sessions.openNew(keyOf(folder), options),
    );
  }
}

export async function useSession(caisson: Caisson, session: Session): Promise<void> {
  const folder = folderOf(session);
  if (folder === undefined) {
    throw new ServiceError("The session belongs to a folder that is not open in this window.", {
      kind: "unsupported",
      hint: `Open the folder ${folderName(session)} first.`,
    });
  }
  const opened = await openingEnvironment(`Opening ${session.profile}`, (options) =>
    caisson.sessions.reopen(session, options),
  );
  caisson.sessions.use(keyOf(folder), opened);
}

export async function forkSession(caisson: Caisson, session: Session): Promise<void> {
  await openingEnvironment(`Forking ${folderName(session)}`, (options) =>
    caisson.sessions.fork(session.id, options),
  );
}

export async function closeSession(caisson: Caisson, session: Session): Promise<void> {
  const kept = session.persistent
    ? "Its files are kept."
    : session.backend === "local"
      ? "The folder stays as it is."
      : "Its environment is removed, with the files in it.";
  if (
    await confirmed(
      `Close the session on ${session.profile}?`,
      `Its processes end. ${kept}`,
      "Close",
    )
  ) {
    await waitingFor(`Closing ${session.profile}`, () => caisson.sessions.close(session.id));
  }
}

export async function deleteSession(caisson: Caisson, session: Session): Promise<void> {
  const detail = "Its processes end, and its environment is removed with the files in it.";
  if (!(await confirmed(`Delete the session on ${session.profile}?`, detail, "Delete"))) {
    return;
  }
  let left: string | undefined;
  try {
    left = await waitingFor(`Deleting ${session.profile}`, () =>
      caisson.sessions.delete(session.id),
    );
  } catch (thrown) {
    const error = serviceError(thrown);
    if (error.kind !== "backendUnavailable") {
      throw error;
    }
    const forget = `Forget it all the same? What is left there is not removed.\n\n${error.message}`;
    if (await confirmed("The environment cannot be reached.", forget, "Forget")) {
      left = await caisson.sessions.delete(session.id, true);
    }
  }
  if (left) {
    void vscode.window.showWarningMessage(message(left));
  }
}

export function asSession(argument: unknown): Session {
  if (typeof argument === "object" && argument !== null && "environmentId" in argument) {
    return argument as Session;
  }
  throw new Error("Choose a session in the list of sessions.");
}
