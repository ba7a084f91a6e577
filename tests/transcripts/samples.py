"""One small synthetic session of each format, in its host's own shape."""

import json

from transcripts import claude

URL = "data:image/png;base64,AAAA"


def json_lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def codex(kind, **payload):
    return {"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload}


def item(kind, **fields):
    return codex("response_item", type=kind, **fields)


def spoken(role, text):
    return item("message", role=role, content=[{"type": "input_text", "text": text}])


def token_count(prompt, total, *, window=258400):
    usage = {"input_tokens": prompt, "cached_input_tokens": prompt // 2, "output_tokens": 10}
    info = {
        "last_token_usage": usage | {"total_tokens": prompt + 10},
        "total_token_usage": {"total_tokens": total},
        "model_context_window": window,
    }
    return codex("event_msg", type="token_count", info=info)


CODEX = (
    codex("session_meta", id="th-1", cwd="/work", base_instructions={"text": "be good"}),
    codex("event_msg", type="task_started", model_context_window=258400),
    spoken("developer", "<permissions instructions>"),
    spoken("user", "<environment_context>here</environment_context>"),
    codex("turn_context", model="gpt-5.5", cwd="/work"),
    spoken("user", "fix it"),
    codex("event_msg", type="user_message", message="fix it"),
    item("reasoning", id="rs_1", summary=[], encrypted_content="AAAA"),
    item("function_call", call_id="c1", name="shell", arguments='{"command":["ls"]}'),
    item("custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin"),
    item("function_call_output", call_id="c1", output="a.txt"),
    item("custom_tool_call_output", call_id="c2", output=[{"type": "input_text", "text": "ok"}]),
    token_count(1000, 1010),
    token_count(1000, 1010),
    item("message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    codex("event_msg", type="agent_message", message="done"),
    token_count(1200, 2220),
)

GEMINI = {
    "sessionId": "s-1",
    "projectHash": "abc",
    "messages": [
        {"id": "m1", "type": "user", "timestamp": "2026-01-02T03:04:05Z", "content": "fix it"},
        {
            "id": "m2",
            "type": "gemini",
            "content": "",
            "model": "gemini-3-pro",
            "thoughts": [{"subject": "Hm", "description": "long"}],
            "tokens": {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "total": 115},
            "toolCalls": [
                {
                    "id": "c1",
                    "name": "read_file",
                    "args": {"file_path": "a"},
                    "status": "success",
                    "resultDisplay": "shown",
                    "result": [{"functionResponse": {"id": "c1", "response": {"output": "text"}}}],
                },
                {
                    "id": "c2",
                    "name": "replace",
                    "args": {},
                    "status": "error",
                    "result": [{"functionResponse": {"response": {"error": "no match"}}}],
                },
            ],
        },
        {"id": "m3", "type": "info", "content": "Request cancelled."},
        {"id": "m4", "type": "gemini", "content": "done", "model": "gemini-3-pro"},
    ],
}


def opencode(role, id, *parts, **info):
    return {
        "info": {"id": id, "role": role, "time": {"created": 1767323045000}, **info},
        "parts": parts,
    }


TOKENS = {"input": 50, "output": 5, "reasoning": 2, "cache": {"read": 900, "write": 10}}

OPENCODE = {
    "info": {"id": "ses_1", "directory": "/work", "version": "1.2"},
    "messages": [
        opencode(
            "user",
            "m1",
            {"type": "text", "text": "fix it"},
            {"type": "file", "mime": "image/png", "url": URL},
        ),
        opencode(
            "assistant",
            "m2",
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            {
                "type": "tool",
                "callID": "c1",
                "tool": "read",
                "state": {"status": "completed", "input": {"filePath": "a"}, "output": "text"},
            },
            {
                "type": "tool",
                "callID": "c2",
                "tool": "bash",
                "state": {"status": "error", "input": {}, "error": "failed"},
            },
            {"type": "step-finish"},
            tokens=TOKENS,
            modelID="gpt-5",
        ),
        opencode("assistant", "m3", {"type": "text", "text": "done"}, modelID="gpt-5"),
    ],
}

PI = (
    {"type": "title", "v": 1, "title": "", "pad": "   "},
    {"type": "session", "version": 3, "id": "s-1", "cwd": "/work"},
    {"type": "model_change", "id": "e1", "parentId": None, "modelId": "gpt-5"},
    {"type": "session_init", "id": "e2", "parentId": "e1", "systemPrompt": "be good"},
    {
        "type": "message",
        "id": "u1",
        "parentId": "e2",
        "message": {"role": "user", "content": "fix"},
    },
    {"type": "custom", "id": "e3", "parentId": "u1", "data": {"any": "thing"}},
    {
        "type": "message",
        "id": "a1",
        "parentId": "u1",
        "timestamp": "2026-01-02T03:04:05Z",
        "message": {
            "role": "assistant",
            "model": "gpt-5",
            "usage": {"input": 30, "output": 4, "cacheRead": 70, "cacheWrite": 0},
            "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "AAAA"},
                {"type": "text", "text": "looking"},
                {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}},
            ],
        },
    },
    {
        "type": "message",
        "id": "r1",
        "parentId": "a1",
        "message": {
            "role": "toolResult",
            "toolCallId": "c1",
            "content": [{"type": "text", "text": "text"}],
            "details": {"shown": "x" * 100},
        },
    },
)

CLINE = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "<task>\nfix it\n</task>"},
            {"type": "text", "text": "<environment_details>\nfiles\n</environment_details>"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "<read_file></read_file>"}]},
    {"role": "user", "content": [{"type": "text", "text": "[read_file for 'a'] Result:"}]},
]

CLINE_SCREEN = [
    {"ts": 1767323045000, "type": "say", "say": "text", "text": "fix it"},
    {
        "ts": 1767323045001,
        "type": "say",
        "say": "api_req_started",
        "text": json.dumps(
            {"request": "<task>fix it</task>", "tokensIn": 10, "tokensOut": 5, "cacheReads": 900}
        ),
    },
    {"ts": 1767323045002, "type": "say", "say": "reasoning", "text": "hm"},
    {"ts": 1767323045003, "type": "say", "say": "text", "text": "looking"},
    {"ts": 1767323045004, "type": "ask", "ask": "tool", "text": "{}"},
]

OPENAI = [
    {"role": "system", "content": "be good"},
    {"role": "user", "content": "fix it"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path":"a"}'},
            },
            {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "text"},
    {"role": "tool", "tool_call_id": "c2", "content": "a.txt"},
    {"role": "assistant", "content": "done"},
]

ANTHROPIC = {
    "model": "claude-opus-4-6",
    "system": [{"type": "text", "text": "be good"}],
    "tools": [{"name": "Read", "input_schema": {}}],
    "messages": [
        {"role": "user", "content": "fix it"},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": {}}],
            "usage": {"input_tokens": 9, "output_tokens": 3},
            "stop_sequence": None,
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "text"}],
        },
    ],
}

MINI = {
    "trajectory_format": "mini-swe-agent-1",
    "info": {"mini_version": "1.15", "config": {"model": {"model_name": "gemini"}}},
    "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "fix it"},
        {
            "role": "assistant",
            "content": "ls",
            "extra": {
                "response": {
                    "id": "gen-1",
                    "model": "gemini-3",
                    "usage": {"prompt_tokens": 100, "completion_tokens": 9},
                }
            },
        },
        {"role": "user", "content": "<returncode>0</returncode>"},
    ],
}

SWE = {
    "environment": "main",
    "trajectory": [{"action": "ls", "observation": "a.txt", "response": "look", "query": [{}]}],
    "history": [
        {"role": "system", "content": "be good", "agent": "main"},
        {"role": "user", "content": "a demonstration", "is_demo": True, "agent": "main"},
        {"role": "user", "content": "fix it", "agent": "main"},
        {
            "role": "assistant",
            "content": "look",
            "agent": "main",
            "tool_calls": [
                {"id": "c1", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
            ],
        },
        {"role": "tool", "content": "a.txt", "tool_call_ids": ["c1"], "agent": "main"},
    ],
}


def hands(id, **fields):
    return {"id": id, "timestamp": "2026-01-02T03:04:05", "source": "agent", **fields}


RESPONSE = {
    "id": "gen-1",
    "model": "gpt-5",
    "usage": {"prompt_tokens": 100, "completion_tokens": 9},
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "look",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "bash", "arguments": '{"command":"ls"}'}},
                    {"id": "c2", "function": {"name": "bash", "arguments": '{"command":"pwd"}'}},
                ],
            }
        }
    ],
}


def made(call):
    return {"tool_call_id": call, "function_name": "bash", "model_response": RESPONSE}


OPENHANDS = {
    "instance_id": "task-1",
    "metadata": {"llm_config": {"model": "openai/gpt-5"}},
    "history": [
        hands(0, action="system", args={"content": "be good", "tools": [{"type": "function"}]}),
        hands(1, source="user", action="message", args={"content": "fix it"}),
        hands(2, source="user", action="recall", args={"query": "fix it"}),
        hands(
            3,
            source="environment",
            observation="recall",
            content="Added workspace context",
            extras={"repo_instructions": "rules", "microagent_knowledge": [{"content": "git"}]},
        ),
        hands(4, action="run", args={"command": "ls"}, tool_call_metadata=made("c1")),
        hands(5, action="run", args={"command": "pwd"}, tool_call_metadata=made("c2")),
        hands(6, observation="run", content="a.txt", cause=4, tool_call_metadata=made("c1")),
        hands(7, observation="error", content="denied", cause=5),
        hands(8, action="finish", args={"final_thought": "done"}),
    ],
}

CLAUDE = (
    claude.user("u1", None, "fix it"),
    claude.reply("a1", "u1", claude.call("c1"), stop="tool_use"),
    claude.answer("r1", "a1", "c1", "text"),
)

SAMPLES = {
    "claude-code": ("s.jsonl", json_lines(*CLAUDE)),
    "codex": ("rollout-1.jsonl", json_lines(*CODEX)),
    "gemini": ("session-1.json", json.dumps(GEMINI).encode()),
    "opencode": ("export.json", json.dumps(OPENCODE).encode()),
    "pi": ("s.jsonl", json_lines(*PI)),
    "cline-ui": ("ui_messages.json", json.dumps(CLINE_SCREEN).encode()),
    "cline": ("api_conversation_history.json", json.dumps(CLINE).encode()),
    "mini-swe-agent": ("a.traj.json", json.dumps(MINI, indent=2).encode()),
    "swe-agent": ("a.traj", json.dumps(SWE, indent=2).encode()),
    "openhands": ("output.jsonl", json_lines(OPENHANDS)),
    "openai-chat": ("chat.json", json.dumps(OPENAI).encode()),
    "anthropic": ("request.json", json.dumps(ANTHROPIC, indent=2).encode()),
}
