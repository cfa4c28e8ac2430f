// Calls one tool through one of the official TypeScript clients, as a user who takes some time to answer:
//
//   node driver.mjs PACKAGES v1|v2-legacy|v2-auto URL TOOL ARGUMENTS
//
// PACKAGES is the folder in which the clients are installed. Prints one JSON object: the text, and what was asked.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [packages, kind, url, tool, args] = process.argv.slice(2);
const ANSWER_AFTER_MS = 1000;

const { resolve } = createRequire(`${packages}/package.json`);
const load = (name) => import(pathToFileURL(resolve(name)));

const releases = {
  v1: async () => {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ElicitRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
    const call = (client, params) => client.callTool(params, undefined, { timeout: 20_000 });
    return { Client, StreamableHTTPClientTransport, elicitation: ElicitRequestSchema, call };
  },
  v2: async () => ({
    ...(await load("@modelcontextprotocol/client")),
    elicitation: "elicitation/create",
    call: (client, params) => client.callTool(params, { timeout: 20_000 }),
  }),
};

const release = await releases[kind.split("-")[0]]();
const negotiation = kind === "v2-auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new release.Client({ name: "driver", version: "1" }, { capabilities: { elicitation: { form: {} } }, ...negotiation });
const seen = [];
client.setRequestHandler(release.elicitation, async ({ params }) => {
  seen.push(params.message);
  await sleep(ANSWER_AFTER_MS);
  return { action: "accept", content: { name: "Ada" } };
});
await client.connect(new release.StreamableHTTPClientTransport(new URL(url)));
const result = await release.call(client, { name: tool, arguments: JSON.parse(args) });
const text = result.content.map((block) => block.text).join("\n");
process.stdout.write(JSON.stringify({ text, seen }), () => process.exit());
