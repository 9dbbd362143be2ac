// Calls a server with the official client for TypeScript; prints what it has found (test_clients.py).
//
// official_client.mjs URL MODE, from the directory of `scripts/setup-mcp`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, mode] = process.argv.slice(2);
const client = new Client(
  { name: "tests", version: "1.0.0" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: mode === "legacy" ? "legacy" : { pin: mode } },
  },
);
client.setRequestHandler("elicitation/create", async () => ({
  action: "accept",
  content: { name: "Ann" },
}));
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const names = (await client.listTools()).tools.map((tool) => tool.name);
if (!names.includes("test_simple_text")) throw new Error(names.join());
const progress = [];
const tool = await client.callTool({ name: "test_simple_text", arguments: {} });
const failed = await client.callTool({ name: "test_error_handling", arguments: {} });
const resource = await client.readResource({ uri: "test://static-text" });
const template = await client.readResource({ uri: "test://template/7/data" });
const prompt = await client.getPrompt({
  name: "test_prompt_with_arguments",
  arguments: { arg1: "a", arg2: "b" },
});
const completed = await client.complete({
  ref: { type: "ref/prompt", name: "test_prompt_with_arguments" },
  argument: { name: "arg1", value: "par" },
});
await client.callTool(
  { name: "test_tool_with_progress", arguments: {} },
  { onprogress: (step) => progress.push(step.progress) },
);
const asked = await client.callTool({
  name: "test_input_required_result_elicitation",
  arguments: {},
});
const found = {
  version: client.getNegotiatedProtocolVersion(),
  tool: tool.content[0].text,
  failed: failed.isError,
  resource: resource.contents[0].text,
  template: template.contents[0].text,
  prompt: prompt.messages[0].content.text,
  completion: completed.completion.values.filter((one) => one !== "party"),
  progress,
  answer: asked.content[0].text,
};
await client.close();
console.log(JSON.stringify(found));
process.exit(0);
