"""Asks `writ lsp` as an editor does, with pygls: python client.py WRIT FOLDER."""

import asyncio
import pathlib
import sys

from lsprotocol import types
from pygls.lsp.client import LanguageClient

WRIT, FOLDER = sys.argv[1:]
PATH = pathlib.Path(FOLDER, "repository", "edited.aflock")
URI = PATH.as_uri()
count = 0


def check(what, held):
    global count
    if not held:
        sys.exit(f"not so: {what}")
    count += 1


async def main():
    client = LanguageClient("test", "1")
    published = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _(params):
        published.put_nowait(params)

    await client.start_io(WRIT, "lsp")
    capabilities = types.ClientCapabilities()
    answer = await client.initialize_async(types.InitializeParams(capabilities=capabilities, root_uri=None))
    check("it says who it is", answer.server_info.name == "writ")
    check("it completes", answer.capabilities.completion_provider is not None)
    client.initialized(types.InitializedParams())

    # A letter outside the first plane counts as two: the place behind it is told in UTF-16.
    text = '{"version": "1.0", "name": "🦀", "tools": {"deny": ["Bsh"]}, "fils": {}}'
    document = types.TextDocumentItem(uri=URI, language_id="aflock", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    found = (await asyncio.wait_for(published.get(), 10)).diagnostics
    check("two problems", [problem.code for problem in found] == ["unknown-tool", "unknown-member"]
          or len(found) == 2)
    tool = next(problem for problem in found if problem.code == "unknown-tool")
    units = text[: text.index('"Bsh"')].encode("utf-16-le")
    check("its place", tool.range.start.character == len(units) // 2)
    check("its help", "Bash" in tool.message)

    identifier = types.TextDocumentIdentifier(URI)

    def change(version, text):
        client.text_document_did_change(types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version=version, uri=URI),
            [types.TextDocumentContentChangeWholeDocument(text)]))

    text = '{\n  "version": "1.0",\n  "name": "x",\n  "tools": { "deny": ["Bash:rm *"] }\n}\n'
    change(2, text)
    check("no problem", not (await asyncio.wait_for(published.get(), 10)).diagnostics)

    hover = await client.text_document_hover_async(types.HoverParams(identifier, types.Position(3, 16)))
    check("what a list is for", "must not use" in hover.contents.value)
    nothing = await client.text_document_hover_async(types.HoverParams(identifier, types.Position(0, 0)))
    check("nothing is known of a bracket", nothing is None)

    change(3, '{\n  "version": "1.0",\n  "na": "x",\n  \n}\n')
    await asyncio.wait_for(published.get(), 10)
    offered = await client.text_document_completion_async(types.CompletionParams(identifier, types.Position(3, 2)))
    labels = [item.label for item in getattr(offered, "items", offered)]
    check("members that are not there yet", "tools" in labels and "version" not in labels)
    inside = await client.text_document_completion_async(types.CompletionParams(identifier, types.Position(2, 5)))
    item = next(item for item in getattr(inside, "items", inside) if item.label == "name")
    check("what is typed is replaced", (item.text_edit.range.start.character, item.text_edit.range.end.character) == (2, 6))

    client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
    check("nothing stays behind", not (await asyncio.wait_for(published.get(), 10)).diagnostics)
    await client.shutdown_async(None)
    client.exit(None)
    await asyncio.wait_for(client.stop(), 10)
    print(f"{count} checks hold")


asyncio.run(main())
