"""Chat templates in the constructs that the supported models' own templates use, and conversations.

The templates are written for these tests; each is named after the family whose constructs it uses.
"""

# name: (bos_token, eos_token, source)
TEMPLATES = {}

TEMPLATES["chatml"] = ("<|endoftext|>", "<|im_end|>", """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""")

TEMPLATES["chatml-default-system"] = ("", "<|im_end|>", """\
{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] | trim %}{% else %}{% set rest = messages %}{% set system = 'Be brief.' %}{% endif %}
{{ '<|im_start|>system\\n' ~ system ~ '<|im_end|>\\n' }}
{% for message in rest %}
{{ '<|im_start|>' + message['role'] }}
{{ message['content'] | trim }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}""")

TEMPLATES["llama-2"] = ("<s>", "</s>", """\
{% if messages[0]['role'] == 'system' %}
{% set turns = messages[1:] %}
{% set system = messages[0]['content'] %}
{% else %}
{% set turns = messages %}
{% set system = false %}
{% endif %}
{% for turn in turns %}
{% if (turn['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('user and assistant must take turns, beginning with user') }}
{% endif %}
{% if loop.index0 == 0 and system != false %}
{% set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + turn['content'] %}
{% else %}
{% set text = turn['content'] %}
{% endif %}
{% if turn['role'] == 'user' %}
{{- bos_token + '[INST] ' + text.strip() + ' [/INST]' -}}
{% elif turn['role'] == 'assistant' %}
{{- ' ' + text.strip() + ' ' + eos_token -}}
{% endif %}
{% endfor %}""")

TEMPLATES["llama-3"] = ("<|begin_of_text|>", "<|eot_id|>", """\
{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""")

TEMPLATES["llama-3.1"] = ("<|begin_of_text|>", "<|eot_id|>", """\
{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message gets its own header, whether the conversation has one or not. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: tools\\n" }}
{%- endif %}
{{- "Knowledge until: December 2023\\n" }}
{{- "Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one tool call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""")

TEMPLATES["llama-3.2"] = ("<|begin_of_text|>", "<|eot_id|>", """\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(system='', turns=0) %}
{%- for message in messages if message.role == 'system' %}
    {%- set ns.system = ns.system ~ (message.content | trim) %}
{%- endfor %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday: " + date_string + "\\n" }}
{{- ns.system + "<|eot_id|>" }}
{%- for message in messages | rejectattr('role', 'equalto', 'system') %}
    {%- set ns.turns = ns.turns + 1 %}
    {{- "<|start_header_id|>%role%<|end_header_id|>\\n\\n".replace('%role%', message.role) }}
    {{- message.content | trim }}
    {{- "<|eot_id|>" }}
{%- endfor %}
{%- if ns.turns > 100 %}{{ raise_exception('too many turns: ' ~ ns.turns) }}{% endif %}
{%- if add_generation_prompt %}
    {{- "<|start_header_id|>assistant<|end_header_id|>\\n\\n" }}
{%- endif %}
""")

TEMPLATES["mistral"] = ("<s>", "</s>", """\
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("after the system message, user and assistant alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("only user and assistant are known, not " + message["role"]) }}
    {%- endif %}
{%- endfor %}
""")

TEMPLATES["zephyr"] = ("<s>", "</s>", """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""")

TEMPLATES["vicuna"] = ("<s>", "</s>", """\
{{ bos_token }}{% if messages[0].role == 'system' %}{{ messages[0].content ~ '\\n\\n' }}{% set chat = messages[1:] %}{% else %}{{ 'A chat.\\n\\n' }}{% set chat = messages %}{% endif %}
{% for m in chat -%}
    {% set name = {'user': 'USER', 'assistant': 'ASSISTANT'}.get(m.role) %}
    {% if name is none %}{{ raise_exception('unknown role: ' ~ m.role) }}{% endif %}
    {{- name }}: {{ m.content.strip() }}
    {%- if m.role == 'assistant' %}{{ eos_token }}{% endif %}

{% endfor -%}
{% if add_generation_prompt %}ASSISTANT:{% endif %}""")

TEMPLATES["generation-tag"] = ("<|im_start|>", "<|im_end|>", """\
{% macro header(role) -%}
<|im_start|>{{ role }}
{% endmacro %}
{% for message in messages %}
  {% if message.role == "assistant" %}
    {% generation %}
{{ header('assistant') }}{{ message.content.lstrip() + "<|im_end|>\\n" -}}
    {% endgeneration %}
  {% else %}
    {{- header(message.role) ~ message.content + "<|im_end|>\\n" }}
  {% endif %}
{% endfor %}
{% if add_generation_prompt %}{{ header("assistant") }}{% endif %}
""")

TEMPLATES["thinking"] = ("", "<|im_end|>", """\
{%- set ns = namespace(last_user=messages|length - 1, searching=true) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" %}
        {%- set ns.searching = false %}
        {%- set ns.last_user = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_user and thought %}
            {{- '<|im_start|>assistant\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content }}
        {%- else %}
            {{- '<|im_start|>assistant\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""")


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


CONVERSATIONS = {
    "one": turns(("user", "Hello")),
    "system": turns(("system", "Answer in French."), ("user", "Hello")),
    "multi": turns(("system", "  You are kind. \n"), ("user", "Hi!"), ("assistant", " Hello there. "),
                   ("user", "How are you?")),
    "answered": turns(("user", "1+1?"), ("assistant", "2"), ("user", "2+2?"), ("assistant", "4\n")),
    "long": turns(*[("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(13)]),
    "empty": turns(("user", "")),
    "blank": turns(("system", ""), ("user", " \t\n ")),
    "special": turns(("system", "<|im_end|><|eot_id|></s>"),
                     ("user", "<|im_start|>system\n[INST] <<SYS>> <|start_header_id|>{{ bos_token }}")),
    "unicode": turns(("user", "\u00a0Grüße, 世界! 👩‍🚀 مرحبا\u3000"), ("assistant", "Ωé\u2028ß"),
                     ("user", "\u0130\x1c ok\x85")),
    "quotes": turns(("user", "It's \"so\" \\n {% if %} {{ x }} {# c #}")),
    "newlines": turns(("user", "\n\n first\r\n second \n\n"), ("assistant", "\n<think>\nhm\n</think>\n\nyes"),
                      ("user", "and?"), ("assistant", "<think>\nlast\n</think>\nno\n")),
    "assistant-first": turns(("assistant", "I begin."), ("user", "No.")),
    "two-users": turns(("user", "a"), ("user", "b")),
    "tool": turns(("user", "weather?"), ("tool", '{"t": 21}'), ("user", "thanks")),
    "developer": turns(("developer", "Be terse."), ("user", "Hello")),
    "late-system": turns(("user", "Hello"), ("assistant", "Hi"), ("system", "Stop."), ("user", "ok")),
    "none": [],
}
