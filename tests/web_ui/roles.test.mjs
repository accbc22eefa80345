// What roles forbid, in the UI: models that are not listed, and runs that are refused with a text.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converse, newChat, notice, register, say, startGateway, startUi } from "./rig.mjs";

const PASSWORD = "correct horse 17 battery";

let gateway, ui, admin, person;
before(async () => {
  gateway = await startGateway({
    env: { DEER_FLOW_AUTH_DISABLED: "0" },
    config: (model) => `config_version: 34
models:
  - {name: fake, display_name: Fake, use: "langchain_openai:ChatOpenAI", model: scripted-1, api_key: none, base_url: "${model}"}
  - {name: small, display_name: Small, use: "langchain_openai:ChatOpenAI", model: scripted-2, api_key: none, base_url: "${model}"}
database: {backend: sqlite}
memory: {enabled: false}
authorization:
  enabled: true
  fail_closed: true
  default_role: user
  provider:
    use: deerflow.authz.rbac:RbacAuthorizationProvider
    config: {roles: {admin: {}, user: {models: {allow: [small]}, skills: {allow: false}, routes: {deny: ["runs:create"]}}}}
`,
  });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "0" });
  admin = await ui.open();
  await register(admin, ui.origin, "initialize", "ann@example.com", PASSWORD);
  person = await ui.open();
  await register(person, ui.origin, "register", "bob@example.com", PASSWORD);
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

/** Returns the names of the models that the composer offers. */
async function models(page) {
  await page.getByRole("button", { name: /^(Fake|Small)$/ }).click();
  const names = await page.getByRole("option").allInnerTexts();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return names.map((name) => name.split("\n")[0]);
}

test("an administrator has all models and chats", async () => {
  await newChat(admin);
  assert.deepEqual(await models(admin), ["Fake", "Small"]);
  await converse(admin, "then say permitted", "permitted");
});

test("a user sees the permitted model, no skill, and why a message is refused", async () => {
  const composer = await newChat(person);
  assert.deepEqual(await models(person), ["Small"]);
  await composer.click();
  await composer.pressSequentially("/");
  const list = person.getByRole("listbox", { name: "Skill suggestions" });
  await list.waitFor();
  assert.deepEqual((await list.getByRole("option").allInnerTexts()).map((entry) => entry.split("\n")[0]).sort(), ["/compact", "/goal"]);
  await say(person, "May I?");
  await notice(person, "Permission denied: runs:create");
});
