// Tokenises grammars as editors do, and says in JSON of each file its tokens: line, text, scopes.
// Usage: node tokens.js FILE..
"use strict";

const fs = require("fs");
const path = require("path");
const oniguruma = require("vscode-oniguruma");
const { Registry, INITIAL, parseRawGrammar } = require("vscode-textmate");

async function main(files) {
  const wasm = path.join(path.dirname(require.resolve("vscode-oniguruma")), "onig.wasm");
  await oniguruma.loadWASM(fs.readFileSync(wasm).buffer);
  const grammar = path.join(__dirname, "syntaxes", "tcg.tmLanguage.json");
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(grammar, "utf8"), grammar),
  });
  const made = await registry.loadGrammar("source.tcg");
  const found = {};
  for (const file of files) {
    let stack = INITIAL;
    found[file] = [];
    fs.readFileSync(file, "utf8").split("\n").forEach((line, number) => {
      const { tokens, ruleStack } = made.tokenizeLine(line, stack);
      stack = ruleStack;
      for (const { startIndex, endIndex, scopes } of tokens) {
        found[file].push([number, startIndex, line.slice(startIndex, endIndex), scopes.slice(1)]);
      }
    });
  }
  process.stdout.write(JSON.stringify(found));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
