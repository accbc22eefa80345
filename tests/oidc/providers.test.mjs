// Sign-in through a certified OIDC server and a mock, on one gateway and on two nodes.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { callback, freePort, me, openPage, startBrowser, startCertified, startGateway, startMock } from "./rig.mjs";

const NAMES = ["basic", "post", "public", "mock"];
const PEOPLE = ["sqlite", "postgres"].map((store) => `${store}-mock`);

let browser;
before(async () => (browser = await startBrowser()));
after(() => browser?.close());

/**
 * Tests of one installation.
 * @param nodes  number of gateways: a sign-in starts on the first and ends on the last
 */
function signsPeopleIn(store, nodes, sections) {
  describe(store, () => {
    const gateways = [];
    let certified, mock, first, last;
    before(async () => {
      const ports = [];
      for (let n = 0; n < nodes; n++) ports.push(await freePort());
      [first, last] = [ports[0], ports.at(-1)].map((port) => `http://127.0.0.1:${port}`);
      certified = await startCertified((name) => [callback(last, name)]);
      mock = await startMock(PEOPLE);
      const providers = { ...certified.settings, ...mock.settings };
      if (nodes > 1) for (const name of NAMES) providers[name].redirect_uri = callback(last, name);
      for (const listen of ports) gateways.push(await startGateway({ providers, sections, listen }));
    });
    after(async () => {
      certified?.stop();
      await mock?.stop();
      for (const gateway of gateways) await gateway.stop();
    });
    const server = (name) => (name === "mock" ? mock : certified);

    test("the providers are listed in the order of the configuration", async () => {
      const { providers } = await (await fetch(`${first}/api/v1/auth/providers`)).json();
      assert.deepEqual(
        providers.map(({ id }) => id),
        NAMES,
      );
    });

    for (const name of NAMES)
      test(`a person signs in through ${name} and comes back`, async () => {
        const person = `${store}-${name}`;
        const page = await openPage(browser);
        let returned;
        page.on("request", (request) => {
          if (request.url().startsWith(callback(last, name))) returned = request.url();
        });
        await page.goto(`${first}/api/v1/auth/oauth/${name}?next=/workspace/chats/new`, { waitUntil: "domcontentloaded" });
        await server(name).signIn(page, person);
        await page.waitForURL(`${last}/auth/callback?next=%2Fworkspace%2Fchats%2Fnew`);
        for (const node of [first, last]) {
          const { email, system_role, oauth_provider } = await me(page, node);
          assert.deepEqual({ email, system_role, oauth_provider }, { email: `${person}@example.org`, system_role: "user", oauth_provider: name });
        }
        // The provider is on the same host, whose cookies do not differ by port.
        const cookies = await page.context().cookies(callback(last, name));
        const names = cookies.map(({ name }) => name);
        for (const set of ["access_token", "csrf_token", "deerflow_session_persistent"]) assert.ok(names.includes(set), `${names}`);
        assert.ok(!names.some((name) => name.startsWith("df_oidc_state_")), `${names}`);
        assert.equal(cookies.find(({ name }) => name === "access_token").httpOnly, true);
        // The state was used, on whichever node.
        for (const node of [first, last]) {
          const again = await page.context().request.get(returned.replace(last, node));
          assert.equal(again.status(), 403);
        }
        await page.context().close();
      });

    for (const name of ["basic", "mock"])
      test(`a person who declines at ${name} sees the sign-in page`, async () => {
        const page = await openPage(browser);
        await page.goto(`${first}/api/v1/auth/oauth/${name}`, { waitUntil: "domcontentloaded" });
        await server(name).decline(page);
        await page.waitForURL(`${last}/login?error=sso_cancelled`);
        assert.equal(await me(page, last), 401);
        await page.context().close();
      });

    test("the address of a callback signs no other browser in", async () => {
      const victim = await openPage(browser);
      const returned = victim.waitForRequest((request) => request.url().startsWith(callback(last, "post")));
      await victim.goto(`${first}/api/v1/auth/oauth/post`, { waitUntil: "domcontentloaded" });
      await certified.signIn(victim, `${store}-victim`);
      const stolen = (await returned).url();
      const thief = await openPage(browser);
      const answer = await thief.context().request.get(stolen);
      assert.equal(answer.status(), 403);
      assert.equal(await me(thief, last), 401);
      for (const page of [victim, thief]) await page.context().close();
    });
  });
}

signsPeopleIn("sqlite", 1, {});
signsPeopleIn("postgres", 2, {
  database: { backend: "postgres", postgres_url: process.env.DEERFLOW_TEST_POSTGRES_URL },
  stream_bridge: { type: "redis", redis_url: process.env.DEERFLOW_TEST_REDIS_URL },
});
