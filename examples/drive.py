"""Drives `writ` as Claude Code does, without it: a repository, a state folder, hooks, and a transcript that the client would have written.

What the examples beside it share. Python's own library alone."""
import http.server, json, os, pathlib, shutil, subprocess, tempfile, threading

WRIT = os.environ.get("WRIT") or shutil.which("writ") or "writ"


class Session:
    """One session in a repository of its own, which is gone afterwards."""

    def __init__(self, name, policy, files):
        self.room = tempfile.TemporaryDirectory(prefix=f"writ-{name}-")
        self.folder = pathlib.Path(self.room.name).resolve()
        self.repository, self.name, self.calls = self.folder / "repository", name, 0
        self.variables = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder), "WRIT_STATE_DIR": str(self.folder / "state")}
        for path, text in {**files, ".aflock": policy}.items():
            at = self.repository / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
        subprocess.run(["git", "init", "--quiet"], cwd=self.repository, check=True)

    def writ(self, *words, stdin="", variables=None):
        """Runs `writ` there, and gives the exit code and what it printed."""
        ran = subprocess.run([WRIT, *words], cwd=self.repository, env={**self.variables, **(variables or {})}, input=stdin, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    def done(self, *words, **more):
        """The same, where it has to succeed."""
        code, said = self.writ(*words, **more)
        assert code == 0, f"writ {' '.join(words)} ended with {code}:\n{said}"
        return said

    def line(self, **members):
        """Writes a line of the transcript."""
        with open(self.folder / "transcript.jsonl", "a") as file:
            file.write(json.dumps(members) + "\n")

    def hook(self, event, **members):
        """What the client sends for an event, and the answer."""
        payload = {"session_id": self.name, "transcript_path": str(self.folder / "transcript.jsonl"), "cwd": str(self.repository), "permission_mode": "default"}
        answer = self.done("hook", stdin=json.dumps({**payload, "hook_event_name": event, **members}))
        return json.loads(answer).get("hookSpecificOutput", {})

    def asks(self, prompt):
        """A human's prompt: a turn begins."""
        self.hook("UserPromptSubmit", prompt=prompt)
        self.line(type="user", message={"role": "user", "content": prompt})

    def call(self, tool, **arguments):
        """A call as the model makes it: its verdict, and why."""
        self.calls += 1
        call = f"call-{self.calls}"
        usage = {"input_tokens": 1200, "output_tokens": 90}
        block = {"type": "tool_use", "id": call, "name": tool, "input": arguments}
        self.line(type="assistant", message={"id": f"m-{call}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": usage})
        answer = self.hook("PreToolUse", tool_name=tool, tool_input=arguments, tool_use_id=call)
        verdict = answer.get("permissionDecision", "allow")
        if verdict == "allow":
            self.hook("PostToolUse", tool_name=tool, tool_input=arguments, tool_use_id=call, tool_response={"ok": True})
        result = {"type": "tool_result", "tool_use_id": call, "content": verdict, "is_error": verdict != "allow"}
        self.line(type="user", message={"role": "user", "content": [result]})
        return verdict, answer.get("permissionDecisionReason", "")

    def stops(self):
        """The end of a turn, which is attested."""
        self.hook("Stop", stop_hook_active=False)


class Server:
    """Writ's own MCP server, as the session's client would start it: tools that Writ runs, decides and signs."""

    def __init__(self, session):
        variables = {**session.variables, "CLAUDE_CODE_SESSION_ID": session.name}
        self.calls = 0
        self.process = subprocess.Popen([WRIT, "mcp", "serve", "--guarded"], cwd=session.repository, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        client = {"name": "claude-code", "version": "2"}
        self.asked("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def asked(self, method, **params):
        self.calls += 1
        self.send({"id": self.calls, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.calls:
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError(f"no answer to {method}")

    def call(self, tool, **arguments):
        """Calls a tool, which has to succeed, and gives its result."""
        result = self.asked("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        return result.get("structuredContent") or json.loads(result["content"][0]["text"])


class Model:
    """An endpoint that speaks Chat Completions, and judges as it is told."""

    def __init__(self, status):
        class Answers(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                judged = json.dumps({"status": status, "reason": "as this example has it"})
                message = {"role": "assistant", "content": judged}
                body = json.dumps({"model": asked["model"], "choices": [{"message": message, "finish_reason": "stop"}]}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words): pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.variables = {"WRIT_EVALUATOR_URL": f"http://127.0.0.1:{self.server.server_port}/v1/chat/completions"}

    def __enter__(self): return self.variables
    def __exit__(self, *_): self.server.shutdown()


def expect(what, found, wanted):
    """Says what came out, and fails where it is something else."""
    assert found == wanted, f"{what}: {found!r}, and not {wanted!r}"
    print(f"  {what}: {found}")
