// The contract on node:http; more than one worker by node:cluster, as its documentation has it.

import cluster from "node:cluster";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { Decoder, encode } from "@msgpack/msgpack";

const TEXT = "text/plain; charset=utf-8";
const JSON_TYPE = "application/json";

const decoder = new Decoder();
const records = Array.from({ length: 1000 }, (_, id) => ({
  id,
  name: "My name",
  description: "Some words on here so it looks full",
  type: "U",
  count: 33,
  created_at: 1569882498.9117897 + id * 0.0000031,
}));
const packed = records.map((record) => encode(record));
// The same with a name and a description of its own in every record.
const packedVaried = records.map((record) =>
  encode({
    ...record,
    name: `${record.name} ${record.id}`,
    description: `${record.description} ${record.id}`,
  }),
);
const jsonArray = Buffer.from(JSON.stringify(records));

function parseMsgpack(isVaried) {
  return String((isVaried ? packedVaried : packed).map((bytes) => decoder.decode(bytes)).length);
}

// A double holds every integer that occurs here exactly.
function millionLoop(seed) {
  let total = seed;
  for (let i = 0; i < 1_000_000; i++) {
    total += i * 3;
    if (total & 64) total -= i;
  }
  return total;
}

function fibonacci(first, limit) {
  const numbers = [];
  let [a, b] = [first, 1];
  while (a <= limit) {
    numbers.push(a);
    [a, b] = [b, a + b];
  }
  return numbers;
}

// With a first number it is the sum of the sequence that starts so: a proof that the list is built.
function fibonacciAnswer(first) {
  if (first === null) return fibonacci(1, 100_000_000)[0] === 1 ? "OK" : "?";
  return String(fibonacci(Number(first), 100_000_000).reduce((sum, number) => sum + number));
}

const NAMES = ["navytux.spb.ru", "www.nexedi.com", "lab.nexedi.com", "www.erp5.com"];
const [NAVYTUX, NEXEDI, LAB, ERP5] = NAMES.map((name) => Buffer.from(name));

function isClose(byte, name) {
  for (let i = 0; i < name.length; i++) {
    if (Math.abs(byte - name[i]) <= 1) return true;
  }
  return false;
}

class Classifier {
  navytux = 0;
  nexedi = 0;
  lab = 0;
  erp5 = 0;
  total = 0;

  nextByte(byte) {
    if (isClose(byte, NAVYTUX)) this.navytux++;
    if (isClose(byte, NEXEDI)) this.nexedi++;
    if (isClose(byte, LAB)) this.lab++;
    if (isClose(byte, ERP5)) this.erp5++;
    this.total++;
  }
}

function classify(path) {
  const c = new Classifier();
  for (let i = "/classify".length; i < path.length; i++) c.nextByte(path.charCodeAt(i));
  const counts = [c.navytux, c.nexedi, c.lab, c.erp5];
  return `${NAMES.map((name, i) => `${name}:\t${counts[i]}\n`).join("")}total:\t${c.total}\n`;
}

function answer(response, body, type = TEXT, status = 200) {
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

async function handle(request, response) {
  const mark = request.url.indexOf("?");
  const path = mark < 0 ? request.url : request.url.slice(0, mark);
  const query = () => new URLSearchParams(mark < 0 ? "" : request.url.slice(mark + 1));
  switch (path) {
    case "/":
      return answer(response, "Welcome!\n");
    case "/parse-msgpack":
      return answer(response, parseMsgpack(query().get("texts") === "varied"));
    case "/encode-json":
      return answer(response, String(JSON.stringify(records).length));
    case "/transfer-data":
      return answer(response, jsonArray, JSON_TYPE);
    case "/million-loop":
      return answer(response, String(millionLoop(Number(query().get("seed") ?? 1))));
    case "/async":
      await sleep(2);
      return answer(response, "OK");
    case "/fibonacci":
      return answer(response, fibonacciAnswer(mark < 0 ? null : query().get("first")));
    default:
      if (path.startsWith("/classify/")) return answer(response, classify(path));
      return answer(response, "no such page\n", TEXT, 404);
  }
}

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "8000" },
    workers: { type: "string", default: "1" },
  },
});
const workers = Number(values.workers);
if (workers > 1 && cluster.isPrimary) {
  for (let i = 0; i < workers; i++) cluster.fork();
} else {
  createServer(handle).listen({ port: Number(values.port), host: "127.0.0.1", backlog: 2048 });
}
