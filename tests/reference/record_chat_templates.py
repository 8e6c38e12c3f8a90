#!/usr/bin/env python3
"""Records what Jinja2 makes of chat templates and of small snippets of the language.

    .deps/reference/bin/python tests/reference/record_chat_templates.py   # set up as README.md says

The environment is set up as the transformers library sets it up for chat templates. Writes
tests/golden/chat-templates.json and tests/golden/jinja-snippets.json.
"""

import datetime
import json
import pathlib

import gguf
import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

import chat_template_sources
import jinja_snippets

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODEL = "models/SmolLM2-135M-Instruct.Q4_1.gguf"
NOW = datetime.datetime(2025, 3, 7, 14, 5, 9)  # ChatTemplateInput::now of the tests


class Refused(Exception):
    pass


class GenerationTag(jinja2.ext.Extension):
    """{% generation %} marks the assistant's text; the text itself is printed as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render"), [], [], body).set_lineno(line)

    def render(self, caller):
        return caller()


def refuse(message):
    raise Refused(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    out = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    out.filters["tojson"] = to_json
    out.globals["raise_exception"] = refuse
    out.globals["strftime_now"] = lambda format: NOW.strftime(format)
    return out


ENVIRONMENT = environment()


def outcome(source, **variables):
    """{"output": text}, {"refused": words} or {"error": True}."""
    try:
        return {"output": ENVIRONMENT.from_string(source).render(tools=None, documents=None,
                                                                 **variables)}
    except Refused as refused:
        return {"refused": str(refused)}
    except Exception:  # whatever Python raises inside a template: the template is wrong
        return {"error": True}


def model_template():
    field = gguf.GGUFReader(ROOT / MODEL).fields["tokenizer.chat_template"]
    return bytes(field.parts[field.data[0]]).decode()


def record_templates():
    templates = [{"name": "smollm2", "model": MODEL, "bos_token": "<|im_start|>",
                  "eos_token": "<|im_end|>"}]
    sources = {"smollm2": model_template()}
    for name, (bos, eos, source) in chat_template_sources.TEMPLATES.items():
        templates.append({"name": name, "bos_token": bos, "eos_token": eos, "source": source})
        sources[name] = source
    for template in templates:
        template["results"] = []
        for name, messages in chat_template_sources.CONVERSATIONS.items():
            for prompt in (True, False):
                result = outcome(sources[template["name"]], messages=messages,
                                 add_generation_prompt=prompt, bos_token=template["bos_token"],
                                 eos_token=template["eos_token"])
                template["results"].append(
                    {"conversation": name, "add_generation_prompt": prompt, **result})
    return {"jinja2": jinja2.__version__, "conversations": chat_template_sources.CONVERSATIONS,
            "templates": templates}


def record_snippets():
    cases = []
    for source in jinja_snippets.SNIPPETS:
        result = outcome(source, messages=jinja_snippets.MESSAGES, add_generation_prompt=True,
                         bos_token="<s>", eos_token="</s>")
        cases.append({"source": source, **result})
    return {"jinja2": jinja2.__version__, "messages": jinja_snippets.MESSAGES, "cases": cases}


def write(name, value):
    path = ROOT / "tests" / "golden" / name
    path.write_text(json.dumps(value, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    write("chat-templates.json", record_templates())
    write("jinja-snippets.json", record_snippets())
