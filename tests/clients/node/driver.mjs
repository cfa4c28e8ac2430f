// Holds conversations with a server through one of the official TypeScript clients, each with a client of its own:
//
//   node driver.mjs v1|v2-legacy|v2-auto URL SCENARIO...
//
// Prints one JSON object: for each scenario what it found, or the error it ended with.

const [kind, url, ...names] = process.argv.slice(2);
const SECONDS = 20;
const FOLDERS = [{ uri: "file:///home/a" }, { uri: "file:///home/b" }];

const releases = {
  v1: async () => {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const types = await import("@modelcontextprotocol/sdk/types.js");
    return {
      Client,
      StreamableHTTPClientTransport,
      elicitation: types.ElicitRequestSchema,
      sampling: types.CreateMessageRequestSchema,
      roots: types.ListRootsRequestSchema,
      call: (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    };
  },
  v2: async () => ({
    ...(await import("@modelcontextprotocol/client")),
    elicitation: "elicitation/create",
    sampling: "sampling/createMessage",
    roots: "roots/list",
    call: (client, name, args, options) => client.callTool({ name, arguments: args }, options),
  }),
};

// The user who answers every question of the server; `seen` are the questions.
function user(action) {
  const seen = [];
  const content = (message) => {
    if (message.startsWith("Number ")) return { number: 10 * parseInt(message.slice("Number ".length)) };
    if (message.startsWith("Book ")) return { agreed: true };
    return { colour: message.includes("after blue") ? "green" : "blue" };
  };
  return {
    seen,
    elicit: async ({ params }) => {
      seen.push(params.message);
      const filledIn = action === "accept" && params.mode !== "url";
      return filledIn ? { action, content: content(params.message) } : { action };
    },
    sample: async ({ params }) => {
      seen.push([params.messages[0].content].flat()[0].text);
      return { role: "assistant", model: "poet", content: { type: "text", text: "So much depends" } };
    },
    roots: async () => {
      seen.push("roots");
      return { roots: FOLDERS };
    },
  };
}

function found(result) {
  const told = { text: result.content.map((block) => block.text).join("\n") };
  if (result.structuredContent !== undefined) told.structured = result.structuredContent;
  return result.isError ? { ...told, isError: true } : told;
}

async function asked(session, tool, args = {}) {
  return { ...found(await session.call(tool, args)), seen: session.user.seen };
}

const scenarios = {
  connect: async ({ client, transport }) => ({
    version: transport.protocolVersion ?? client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion(),
    instructions: client.getInstructions(),
    capabilities: Object.keys(client.getServerCapabilities()).sort(),
  }),
  list: async ({ client }) => ({
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    resources: (await client.listResources()).resources.map((resource) => resource.uri),
    templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
    prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  }),
  structured: async ({ client, call }) => {
    await client.listTools(); // from here on the client holds every result against the tool's output schema
    return found(await call("measure", { text: "größer als klein" }));
  },
  text: async ({ call }) => found(await call("shout", { text: "größer" })),
  failure: async ({ call }) => found(await call("fails")),
  missing: async ({ client, call }) => {
    const attempts = [
      () => call("nothing"),
      () => client.readResource({ uri: "nothing://here" }),
      () => client.getPrompt({ name: "nothing" }),
    ];
    const codes = [];
    for (const attempt of attempts) codes.push(await attempt().then(() => null, (error) => error.code));
    return codes;
  },
  header: async ({ client, call }) => {
    await client.listTools();
    return found(await call("forecast", { city: "Zürich" }));
  },
  read: async ({ client }) => {
    const contents = [];
    for (const uri of ["notes://today", "cities://Oslo"]) contents.push(...(await client.readResource({ uri })).contents);
    return contents.map((item) => item.text);
  },
  prompt: async ({ client }) =>
    (await client.getPrompt({ name: "review", arguments: { text: "this" } })).messages.map((message) => message.content.text),
  complete: async ({ client }) => {
    const ref = { type: "ref/resource", uri: "cities://{city}" };
    return (await client.complete({ ref, argument: { name: "city", value: "L" } })).completion.values;
  },
  progress: async ({ call }) => {
    const seen = [];
    const onprogress = ({ progress, total, message }) => seen.push([progress, total, message]);
    return { ...found(await call("count", { to: 3 }, { onprogress })), seen };
  },
  often: async ({ call }) => {
    const texts = [];
    for (let number = 0; number < 8; number++) texts.push(found(await call("shout", { text: `${number}` })).text);
    return texts;
  },
  accept: (session) => asked(session, "asks"),
  decline: (session) => asked(session, "asks"),
  cancel: (session) => asked(session, "asks"),
  page: (session) => asked(session, "asks_to_open_a_page"),
  twice: (session) => asked(session, "asks_twice"),
  gathered: (session) => asked(session, "asks_in_parallel", { seed: 1 }),
  grouped: (session) => asked(session, "asks_in_parallel", { seed: 2, grouped: true }),
  many: (session) => asked(session, "asks_many", { many: 12 }),
  step: (session) => asked(session, "books"),
  sample: (session) => asked(session, "samples"),
  roots: (session) => asked(session, "lists_roots"),
  prompt_that_asks: async ({ client, user }) => ({
    text: (await client.getPrompt({ name: "paint" })).messages[0].content.text,
    seen: user.seen,
  }),
  template_that_asks: async ({ client, user }) => ({
    text: (await client.readResource({ uri: "letters://Ada" })).contents[0].text,
    seen: user.seen,
  }),
};

async function converse(release, name) {
  const someone = user(["decline", "cancel"].includes(name) ? name : "accept");
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
  const versionNegotiation = kind === "v2-auto" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new release.Client({ name: "driver", version: "1" }, { capabilities, ...versionNegotiation });
  client.setRequestHandler(release.elicitation, someone.elicit);
  client.setRequestHandler(release.sampling, someone.sample);
  client.setRequestHandler(release.roots, someone.roots);

  // A request that the client does not wait for, such as its GET, is waited for here: the server has then seen it.
  const underWay = [];
  const fetch = (...request) => {
    const answer = globalThis.fetch(...request);
    underWay.push(answer.catch(() => undefined));
    return answer;
  };
  const requestInit = { headers: { "x-scenario": name } };
  const transport = new release.StreamableHTTPClientTransport(new URL(url), { fetch, requestInit });
  await client.connect(transport);
  const call = (tool, args = {}, options = {}) => release.call(client, tool, args, options);
  const value = await scenarios[name]({ client, transport, call, user: someone });
  await Promise.all(underWay);
  await client.close();
  return value;
}

async function bounded(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${SECONDS} s`)), SECONDS * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const release = await releases[kind.split("-")[0]]();
const report = {};
for (const name of names) {
  try {
    report[name] = { value: await bounded(converse(release, name)) };
  } catch (error) {
    report[name] = { error: `${error?.stack ?? error}` };
  }
}
process.stdout.write(JSON.stringify(report), () => process.exit());
