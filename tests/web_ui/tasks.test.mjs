// The page of scheduled tasks: create, trigger, fire, pause and delete.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { notice, startGateway, startUi, until } from "./rig.mjs";

let gateway, ui;
before(async () => {
  gateway = await startGateway({
    config: (model) => `config_version: 34
models: [{name: fake, use: "langchain_openai:ChatOpenAI", model: scripted-1, api_key: none, base_url: "${model}"}]
database: {backend: sqlite}
memory: {enabled: false}
scheduler: {enabled: true, poll_interval_seconds: 1, min_once_delay_seconds: 0}
`,
  });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "1" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

const get = (path) => fetch(`${gateway.origin}${path}`).then((answer) => answer.json());

/** Waits until a task has a finished run with this trigger, and returns it. */
const finished = (task, trigger) =>
  until(async () => {
    const runs = await get(`/api/scheduled-tasks/${task.id}/runs`);
    return runs.find((run) => run.trigger === trigger && run.status === "success");
  }, `a run by ${trigger}`);

test("a task is created, triggered, paused, resumed and deleted", async () => {
  const page = await ui.open();
  await page.goto("/workspace/scheduled-tasks");
  const form = page.getByTestId("scheduled-task-create-form");
  await form.getByPlaceholder("Task title").fill("Daily summary");
  await form.getByPlaceholder("Prompt").fill("then say summarized");
  await form.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: /Daily summary/ }).waitFor();
  const [task] = await get("/api/scheduled-tasks");
  assert.equal(task.schedule_type, "cron");

  const detail = page.getByTestId("scheduled-task-detail");
  await detail.getByRole("button", { name: "Trigger now" }).click();
  const run = await finished(task, "manual");
  await page.reload();
  await page.getByTestId("scheduled-task-runs").getByText("1 run").waitFor();
  await page.goto(`/workspace/chats/${run.thread_id}`);
  await page.getByText("summarized", { exact: true }).first().waitFor();

  await page.goto("/workspace/scheduled-tasks");
  await detail.getByRole("button", { name: "Edit", exact: true }).click();
  await detail.getByPlaceholder("Edit title").fill("");
  await detail.getByRole("button", { name: "Save edit" }).click();
  await notice(page, "title must have 1 to 200 characters");
  await detail.getByRole("button", { name: "Cancel edit" }).click();
  await detail.getByRole("button", { name: "Pause" }).click();
  await page.getByTestId(`scheduled-task-item-${task.id}`).getByText(/paused/i).waitFor();
  await detail.getByRole("button", { name: "Resume" }).click();
  await page.getByTestId(`scheduled-task-item-${task.id}`).getByText(/enabled/i).waitFor();
  page.on("dialog", (dialog) => dialog.accept());
  await detail.getByRole("button", { name: "Delete" }).click();
  const confirmation = page.getByRole("dialog").or(page.getByRole("alertdialog"));
  if (await confirmation.count()) await confirmation.getByRole("button", { name: "Delete" }).click();
  await page.getByTestId(`scheduled-task-item-${task.id}`).waitFor({ state: "detached" });
});

test("a task that runs once fires at its time", async () => {
  const page = await ui.open();
  const body = { title: "Once", prompt: "then say fired", schedule_type: "once", schedule_spec: { run_at: new Date(Date.now() + 3_000).toISOString() }, timezone: "UTC" };
  const answer = await fetch(`${gateway.origin}/api/scheduled-tasks`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.clone().text());
  const task = await answer.json();
  await page.goto("/workspace/scheduled-tasks");
  await page.getByTestId(`scheduled-task-item-${task.id}`).waitFor();
  const run = await finished(task, "scheduled");
  await page.reload();
  await page.getByTestId(`scheduled-task-item-${task.id}`).getByText(/completed/i).waitFor();
  await page.goto(`/workspace/chats/${run.thread_id}`);
  await page.getByText("fired", { exact: true }).first().waitFor();
});
