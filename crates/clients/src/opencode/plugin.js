// Written by `writ init --client opencode`; `writ init --client opencode --undo` takes it away again.
// Asks Writ before each call of a tool. Nothing but a clear yes lets the tool run: not silence, not an error, not time that runs out.
import { spawnSync } from "node:child_process"

const PROGRAM = "writ"
const PATIENCE = 30000
const DATABASE = (process.env.XDG_DATA_HOME || (process.env.HOME || "") + "/.local/share") + "/opencode/opencode.db"

const ask = (told) => {
  const input = JSON.stringify(told)
  const run = spawnSync(PROGRAM, ["hook", "--client", "opencode"], { input, encoding: "utf8", timeout: PATIENCE, killSignal: "SIGKILL", maxBuffer: 1 << 24 })
  if (run.error || run.status !== 0) throw new Error("writ gave no verdict: " + (run.error ?? run.stderr))
  const answer = JSON.parse(run.stdout)
  if (answer === null || typeof answer !== "object" || answer.go !== true) throw new Error(String(answer?.refused || "writ denies this"))
}

const quietly = (told) => {
  try { ask(told) } catch {}
}

export const Writ = async ({ directory }) => {
  const parents = new Map()
  const root = (id) => {
    for (let hops = 0; hops < 64 && parents.has(id); hops++) id = parents.get(id)
    return id
  }
  const told = (event, id, more) => ({ event, session: root(id), ...(parents.has(id) ? { agent: { id } } : {}), cwd: directory, ...(DATABASE.startsWith("/") ? { database: DATABASE } : {}), ...more })
  const call = (input, args) => ({ id: String(input.callID), tool: String(input.tool), input: args ?? {} })
  return {
    event: async ({ event }) => {
      const id = event?.properties?.sessionID ?? event?.properties?.info?.id
      if (event?.type === "session.created") {
        const parent = event.properties?.info?.parentID
        if (parent) parents.set(id, parent)
        quietly(parent ? told("subagent-start", id) : told("session-start", id, { source: "startup" }))
      } else if (event?.type === "session.idle") {
        quietly(told(parents.has(id) ? "subagent-stop" : "stop", id))
      }
    },
    "chat.message": async (input, output) => {
      if (parents.has(input.sessionID)) return
      const text = (output?.parts ?? []).map((part) => part?.text ?? "").join("\n")
      ask(told("prompt", input.sessionID, { text }))
    },
    "tool.execute.before": async (input, output) => ask(told("before-call", input.sessionID, { call: call(input, output?.args) })),
    "tool.execute.after": async (input, output) =>
      quietly(told("after-call", input.sessionID, { call: call(input, input.args), response: String(output?.output ?? "") })),
  }
}
