// The workloads with a database on node:http and pg; more than one worker by node:cluster.

import cluster from "node:cluster";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import ejs from "ejs";
import pg from "pg";

// A statement with a name is prepared once per connection.
const WORLD = { name: "world", text: "SELECT id, randomnumber FROM world WHERE id = $1" };
const ITEMS = {
  name: "items",
  text:
    "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count " +
    "FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3",
};
const READ = { name: "read", text: "SELECT id, randomnumber FROM changing WHERE id = $1" };
const WRITE = { name: "write", text: "UPDATE changing SET randomnumber = $2 WHERE id = $1" };
const FORTUNES = { name: "fortunes", text: "SELECT id, message FROM fortune" };
const PAGE = ejs.compile(
  "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>" +
    "<tr><th>id</th><th>message</th></tr>" +
    "<% for (const row of rows) { %><tr><td><%= row.id %></td><td><%= row.message %></td></tr><% } %>" +
    "</table></body></html>",
  { _with: false, destructuredLocals: ["rows"] },
);

const draw = () => Math.floor(Math.random() * 10_000) + 1;
const asWorld = ({ id, randomnumber }) => ({ id, randomNumber: randomnumber });

function drawDifferent(count) {
  const ids = new Set();
  while (ids.size < count) ids.add(draw());
  return [...ids].sort((a, b) => a - b);
}

// Statements of one connection wait for each other in pg's own queue.
async function withConnection(work) {
  const connection = await pool.connect();
  try {
    return await work((statement, values) => connection.query({ ...statement, values }));
  } finally {
    connection.release();
  }
}

async function dbOne(query) {
  const { rows } = await pool.query({ ...WORLD, values: [Number(query.get("id"))] });
  return asWorld(rows[0]);
}

async function dbRows(query) {
  const values = ["min", "max", "limit"].map((name) => Number(query.get(name)));
  const { rows } = await pool.query({ ...ITEMS, values });
  const items = rows.map(({ rating_score, rating_count, ...item }) => ({
    ...item,
    rating: { score: rating_score, count: rating_count },
  }));
  return { items, count: items.length };
}

function dbQueries(query) {
  const ids = Array.from({ length: Number(query.get("n")) }, draw);
  return withConnection(async (execute) => {
    const found = await Promise.all(ids.map((id) => execute(WORLD, [id])));
    return found.map(({ rows }) => asWorld(rows[0]));
  });
}

// In the order of the ids, so that no two requests wait for each other; the writes are one transaction.
function dbUpdates(query) {
  const ids = drawDifferent(Number(query.get("n")));
  return withConnection(async (execute) => {
    const found = await Promise.all(ids.map((id) => execute(READ, [id])));
    const rows = found.map(({ rows }) => ({ id: rows[0].id, randomNumber: draw() }));
    await execute({ text: "BEGIN" });
    try {
      await Promise.all(rows.map((row) => execute(WRITE, [row.id, row.randomNumber])));
      await execute({ text: "COMMIT" });
    } catch (error) {
      await execute({ text: "ROLLBACK" });
      throw error;
    }
    return rows;
  });
}

async function fortunes() {
  const { rows } = await pool.query(FORTUNES);
  rows.push({ id: 0, message: "Additional fortune added at request time." });
  rows.sort((a, b) => (a.message < b.message ? -1 : 1));
  return PAGE({ rows });
}

const ROUTES = {
  "/db": dbOne,
  "/async-db": dbRows,
  "/queries": dbQueries,
  "/updates": dbUpdates,
  "/fortunes": fortunes,
};

function answer(response, body, type, status = 200) {
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

async function handle(request, response) {
  const mark = request.url.indexOf("?");
  const path = mark < 0 ? request.url : request.url.slice(0, mark);
  const route = ROUTES[path];
  if (route === undefined) return answer(response, "no such page\n", "text/plain", 404);
  try {
    const found = await route(new URLSearchParams(mark < 0 ? "" : request.url.slice(mark + 1)));
    if (typeof found === "string") answer(response, found, "text/html; charset=utf-8");
    else answer(response, JSON.stringify(found), "application/json");
  } catch (error) {
    answer(response, `${error}\n`, "text/plain", 500);
  }
}

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "8000" },
    workers: { type: "string", default: "1" },
  },
});
const workers = Number(values.workers);
let pool;
if (workers > 1 && cluster.isPrimary) {
  for (let i = 0; i < workers; i++) cluster.fork();
} else {
  pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
  createServer(handle).listen({ port: Number(values.port), host: "127.0.0.1", backlog: 2048 });
}
