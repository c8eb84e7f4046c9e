// Starts `tcc lsp` for grammars of tools.  The command is a setting of the machine: a folder that is
// opened cannot name another program.
"use strict";

const { workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

exports.activate = async function () {
  const [command, ...args] = workspace.getConfiguration("tcc").get("command");
  client = new LanguageClient(
    "tcc",
    "Tool grammars",
    { command, args, transport: TransportKind.stdio },
    { documentSelector: [{ language: "tcg" }] },
  );
  await client.start();
};

exports.deactivate = () => client && client.stop();
