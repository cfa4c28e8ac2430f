// Makes long calls through one of the official TypeScript clients, one alone and three at once:
//
//   node typescript.cjs v1|v2 PACKAGES URL
//
// PACKAGES is the folder whose `node_modules` has the clients. Prints one JSON object.

const { createRequire } = require("node:module");
const [kind, packages, url] = process.argv.slice(2);
const from = createRequire(`${packages}/`);
const SECONDS = 20;

function release() {
  if (kind === "v2") return from("@modelcontextprotocol/client");
  const { Client } = from("@modelcontextprotocol/sdk/client/index.js");
  return { Client, ...from("@modelcontextprotocol/sdk/client/streamableHttp.js") };
}

async function main() {
  const { Client, StreamableHTTPClientTransport } = release();
  const client = new Client({ name: "poller", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const call = async (name, args) => {
    const seen = [];
    const onprogress = ({ progress, total, message }) => seen.push([progress, total ?? null, message ?? null]);
    const options = { onprogress, resetTimeoutOnProgress: true, timeout: SECONDS * 1000 };
    const params = { name, arguments: args };
    const result = await (kind === "v2" ? client.callTool(params, options) : client.callTool(params, undefined, options));
    return { text: result.content[0].text, isError: result.isError ?? false, seen };
  };
  const report = { alone: await call("long", { n: 1 }) };
  report.together = await Promise.all([2, 3, 4].map((n) => call("long", { n })));
  report.awkward = await call("awkward", {});
  report.failing = await call("failing", {});
  process.stdout.write(JSON.stringify(report), () => process.exit());
}

setTimeout(() => process.exit(1), SECONDS * 1000);
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
