// A memnode, and what may stand between it and a client.
// MNEME_TEST_PROGRAMS names the folder with memnode and memctl (go build -o FOLDER mneme/cmd/...).

import { spawn } from "node:child_process";
import { mkdtemp, open, rm } from "node:fs/promises";
import { createServer as createHttp } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "mneme";

export function program(name) {
  const folder = process.env.MNEME_TEST_PROGRAMS;
  if (!folder) throw new Error("MNEME_TEST_PROGRAMS must name the folder with memnode and memctl");
  return join(folder, name);
}

/** Starts a memnode; resolves once it is ready. */
export async function startNode(...args) {
  const folder = await mkdtemp(join(tmpdir(), "mneme-typescript-"));
  const log = await open(join(folder, "log"), "w");
  const command = ["--data-dir", join(folder, "data"), "--http-addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", ...args];
  const env = { HOME: folder, PATH: process.env.PATH };
  const child = spawn(program("memnode"), command, { stdio: ["ignore", "pipe", log.fd], env });
  const exited = new Promise((resolve) => child.on("exit", resolve));
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
    await log.close();
    await rm(folder, { recursive: true, force: true });
  };
  const lines = createInterface(child.stdout);
  const url = await new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      const said = /^memnode ready .*http=(\S+)/.exec(line);
      if (said) resolve(said[1]);
    });
    exited.then(() => reject(new Error("memnode did not get ready")));
  });
  return { url, folder, stop };
}

/**
 * Stands between a client and a node, and cuts connections: cut sees all that the node has answered on one, and says
 * after how many bytes of it the connection ends; undefined lets all through.
 */
export async function startProxy(url, cut = () => undefined) {
  const { hostname, port } = new URL(url);
  const sockets = new Set();
  const proxy = { url: "", connections: 0, sockets, close: async () => {} };
  const server = createServer((client) => {
    proxy.connections++;
    const node = connect(Number(port), hostname);
    let answer = Buffer.alloc(0);
    for (const socket of [client, node]) {
      sockets.add(socket);
      socket.on("error", () => {}); // the other one is ended below
      socket.on("close", () => {
        client.destroy();
        node.destroy();
        sockets.delete(socket);
      });
    }
    client.on("data", (data) => node.write(data));
    node.on("data", (data) => {
      const sent = answer.length;
      answer = Buffer.concat([answer, data]);
      const end = cut(answer);
      client.write(answer.subarray(sent, end));
      if (end !== undefined) client.end(() => client.destroy());
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  proxy.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      for (const socket of sockets) socket.destroy();
    });
  return proxy;
}

/** Cuts the first answers before a byte of them has arrived: the node has done what it was asked. */
export function first(times) {
  let left = times;
  return () => (left-- > 0 ? 0 : undefined);
}

/** Answers every request with the same, behind those that come first; the answers to the first ones are lost. */
export async function startAnswering(status, document, headers = {}, lost = 0, first = []) {
  const always = [status, typeof document === "string" ? document : JSON.stringify(document), headers];
  const answering = { url: "", asked: 0, close: async () => {} };
  const server = createHttp((request, response) => {
    answering.asked++;
    request.resume();
    if (lost-- > 0) {
      request.on("end", () => response.destroy());
      return;
    }
    const [code, body, more] = first.shift() ?? always;
    request.on("end", () => response.writeHead(code, { "Content-Length": Buffer.byteLength(body), ...more }).end(body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  answering.close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  answering.url = `http://127.0.0.1:${server.address().port}`;
  return answering;
}

/** An address at which nobody listens. */
export async function nobody() {
  const { url, close } = await startAnswering(200, "");
  await close();
  return url.replace("http://", "");
}

let names = 0;

/** A client and a namespace of its own. */
export async function fresh(url, options = {}) {
  const client = new Client(url, { agent: "agent-7", ...options });
  const ns = `team-${++names}`;
  await client.createNamespace(ns);
  return { client, ns };
}

/** What an iteration yields, all or the first so many. */
export async function take(source, n = Infinity) {
  const out = [];
  for await (const item of source) {
    out.push(item);
    if (out.length >= n) break;
  }
  return out;
}
