#!/bin/sh
# Look at a conversation from outside its host, with the command line of the MCP Inspector.
#
#   examples/inspector.sh [TRANSCRIPT]
#
# It opens a session that follows the transcript, tells what fills the window, what snip would
# free, and reads the status again as a resource. Every call is a process of its own, so the
# session lives in a file. Needs Node; INSPECTOR and SERVER name other commands than the usual.
set -eu
transcript=${1:-$(dirname "$0")/../mcp_context_server/demo/recording.jsonl}
transcript=$(cd "$(dirname "$transcript")" && pwd)/$(basename "$transcript")
inspector=${INSPECTOR:-npx --yes @modelcontextprotocol/inspector}
server=${SERVER:-mcp-context-server}
kept=$(mktemp -d)
trap 'rm -r "$kept"' EXIT

# $inspector and $server may be several words.
# shellcheck disable=SC2086
ask() {
  $inspector --cli -e "MCP_CONTEXT_ALLOWED_ROOTS=$(dirname "$transcript")" \
    $server serve --store "sqlite:///$kept/sessions.db" --method "$@"
}
call() {
  tool=$1
  shift
  ask tools/call --tool-name "$tool" --tool-arg session_id=looked-at "$@"
}
# Prints the value of a JavaScript expression over the answer `it`.
pick() {
  node -pe "it = JSON.parse(require('fs').readFileSync(0)); $1"
}

call session_open "transcript=$transcript" | pick 'it.structuredContent.messages + " messages"'
call context_status | pick '
  s = it.structuredContent
  Object.entries(s.breakdown).map(([part, tokens]) => `${tokens}\t${part}`).join("\n") +
  `\n${s.percent_used} % of the ${s.effective_window} that can be used. ${s.advice}`'
call snip older_than_rounds=20 dry_run=true |
  pick '`snip would free ${it.structuredContent.tokens_freed} tokens`'
ask resources/read --uri context://sessions/looked-at/status |
  pick '"as a resource: " + JSON.parse(it.contents[0].text).state'
