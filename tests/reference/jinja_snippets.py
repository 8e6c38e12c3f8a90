"""Small templates, one construct each, whose results are recorded from Jinja2."""

MESSAGES = [
    {"role": "system", "content": "  Be kind. "},
    {"role": "user", "content": "Grüße, 世界!"},
    {"role": "assistant", "content": "a-b_c d"},
    {"role": "user", "content": "x"},
]

# Each is printed: {{ EXPRESSION }}
EXPRESSIONS = r"""
none
true
True
false
1
-1
- 1
+3
0
1_000
1.5
1e3
1.5e-7
1e16
123456789012345678.0
0.1 + 0.2
1e22
1e-5
0.0001
-0.0
'a'
"b"
'a' 'b' "c"
'it\'s'
"tab\tnew\nback\\slash\x41\u00e9\U0001F600\101"
'\d\q'
1 + 2 * 3
(1 + 2) * 3
7 / 2
8 / 2
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 % 2
7.5 % -2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
2.0 ** 0.5
2 ** 62
1 / 0
1 // 0
1 % 0
1.0 / 0
5 - 3 - 1
100 // 7 // 2
true + true
true + 1
1 + 1.0
3 * 1.5
'a' + 'b'
'a' + 1
1 + 'a'
'a' * 3
3 * 'ab'
'a' * -1
'a' * 0
[1] * 2
[1] + [2, 3]
(1,) + (2,)
[1] + (2,)
1 ~ 2
'a' ~ 1 ~ none ~ true ~ 1.0
'a' ~ 1 + 2
1 + 2 ~ 3
2 * 3 ~ 4
[1, 'a', none, true, 1.5]
[]
()
(1,)
(1, 2)
1, 2
{}
{'a': 1, "b": [1, {'c': none}]}
{1: 2, none: 3, true: 4}
{'a': 1, 'a': 2}
['it\'s', "q\"", 'both\'"', 'line\n\t\r\\', 'é', '\x00\x7f\x1b', '\u200b', '\u3000']
1 == 1.0
1 == true
'1' == 1
none == none
[1, 2] == [1, 2]
[1] == (1,)
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
nothing == other
nothing == none
1 != 2
1 < 2
1 < 2 < 3
1 < 3 < 2
1 <= 1.0
'a' < 'b'
'Z' < 'a'
'é' > 'z'
[1, 2] < [1, 3]
[1] < [1, 0]
1 < 'a'
none < 1
2 > 1 == true
not true
not not 1
not ''
1 and 2
0 and 2
0 or 'x'
'' or none
1 or nothing.x
false and nothing.x
1 if true
1 if false
1 if false else 2
1 if true else 2 if true else 3
1 if false else 2 if false else 3
'a' in 'abc'
'' in 'abc'
'd' not in 'abc'
not 'a' in 'abc'
1 in [1, 2]
'1' in [1, 2]
1.0 in [1]
3 not in (1, 2)
'a' in {'a': 1}
1 in 'abc'
1 in 5
'x' in nothing
nothing in [1]
nothing
nothing.x
nothing['x']
nothing[0]
nothing + 1
nothing ~ 'x'
nothing|length
nothing|upper
nothing|trim ~ '|'
nothing|list
nothing|default('d')
nothing|d('d')
nothing|default
''|default('d')
''|default('d', true)
''|default('d', boolean=true)
none|default('d')
0|default(7, true)
nothing|default(default_value='z')
nothing()
none.x
none['x']
none.x.y
1.x
'a'.nothing
'a'.nothing()
[1].x
messages[0].nothing is defined
messages[0].nothing is undefined
messages[0]['nothing'] is defined
messages[0].nothing.deep is defined
messages.nothing
messages[99]
messages[99] is defined
messages[-1].content
messages[-5] is defined
messages[0].role
messages[0]['role']
messages[0].get('role')
messages[0].get('nope')
messages[0].get('nope', 'default')
messages[0].items()
messages[0].keys()
messages[0].values()
messages[0]|length
messages|length
messages|count
'role' in messages[0]
messages[0].keys()|list
messages[0].items()|list
messages[0]|items|list
messages[0]|list
messages[1:]|length
messages[1:3]|length
messages[:-1]|length
messages[::2]|length
messages[::-1][0].role
messages|map(attribute='role')|list
messages|map(attribute='role')|join(', ')
messages|map(attribute='nope', default='-')|join
messages|map('length')|list
['a', 'b']|map('upper')|list
['a b']|map('replace', ' ', '_')|list
messages|selectattr('role', 'equalto', 'user')|list|length
messages|selectattr('role', '==', 'user')|map(attribute='content')|list
messages|selectattr('role', 'in', ['user', 'tool'])|list|length
messages|rejectattr('role', 'eq', 'user')|map(attribute='role')|join('/')
messages|selectattr('nope')|list
messages|selectattr('role', 'defined')|list|length
messages|selectattr('role', 'eq', 'zzz')|first
messages|selectattr('role', 'eq', 'zzz')|first is defined
messages|selectattr('role', 'eq', 'user')|first
messages|selectattr('role', 'eq', 'zzz') and 1
(messages|selectattr('role', 'eq', 'user'))[0]
messages|selectattr('role', 'eq', 'user')|length
messages|map(attribute='content.0')|list
[1, 0, 2, none]|select|list
[1, 0, 2, none]|reject|list
[1, 2, 3, 4]|select('odd')|list
[1, 2, 3, 4]|reject('even')|list
[1, 2, 3, 4]|select('gt', 2)|list
[1, 2, 3, 4]|select('divisibleby', 2)|list
messages
messages|tojson
messages|tojson(indent=2)
messages[0]|tojson(indent=4)
[]|tojson(indent=2)
{}|tojson(indent=2)
[[], {}, [1]]|tojson(indent=1)
{'a': [1, 2.0, none, true], 'b': {'c': 'd"\\\n\t\u0001é/'}}|tojson
(1, 2)|tojson
{1: 2, none: 1, true: 0, 1.5: 3}|tojson
nothing|tojson
'<b>&\''|tojson
1e400|tojson
{'b': 1, 'a': 2}|tojson(sort_keys=true)
{'b': 1, 'a': [2]}|tojson(separators=(',', ':'))
messages|selectattr('role')|tojson
'abc'|length
'世界'|length
'abc'[0]
'abc'[-1]
'abc'[5]
'abc'[1:]
'abc'[:-1]
'abc'[::-1]
'世界!'[0]
'世界!'[1:]
'世界!'[::-1]
'世界!'[-1]
'世界!a'[::2]
'abcdef'[1:5:2]
'abcdef'[5:1:-2]
'abcdef'[-3:]
'abcdef'[:100]
'abcdef'[100:]
'abcdef'[-100:2]
'abcdef'[none:2]
'abc'[::0]
[1, 2, 3][::-1]
[1, 2, 3][1:]
[1, 2, 3][5:]
(1, 2, 3)[:2]
[1, 2, 3][-1]
[1, 2, 3][true]
[1, 2, 3]['a']
[1, 2, 3].0
[[1, 2], [3]][0][1]
{'a': {'b': 5}}.a.b
{'a': 1}['a']
{'a': 1}.b
{1: 'x'}[1]
{1: 'x'}[1.0]
{'items': 5}['items']
5[0]
5['x']
'  x '|trim ~ '|'
'xxaxx'|trim('x')
' a '.strip() ~ '|'
' a '.lstrip() ~ '|'
' a '.rstrip() ~ '|'
'xyaxy'.strip('xy')
'xyaxy'.lstrip('yx')
'xyaxy'.rstrip('x')
'ééaéé'.strip('é')
'\u3000\u00a0a\u2028'.strip()
'a'.strip(none)
'abc'.strip('')
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.split(',')[-1]
' a  b '.split()
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
''.split()
''.split(',')
'aXXbXXc'.split('XX')
'abc'.split('')
'aaa'.split('aa')
'aaa'.rsplit('aa')
'a\nb\r\nc\n'.splitlines()
'a\nb'.splitlines(true)
'\n\n'.splitlines()
'abc'.startswith('a')
'abc'.startswith('b')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'abc'.endswith(('x', 'c'))
'abc'.startswith('')
'abc'.startswith(1)
'aBc'.upper()
'aBc'.lower()
'hello world'.title()
"they're bill's".title()
"they're bill's"|title
'hello-wORLD (foo) [bar]'|title
'hELLO wORLD'.capitalize()
'hELLO'|capitalize
'straße ﬁ é'|upper
'ÀÉÎ ΑΒΓ'|lower
'a.b.a'.replace('a', 'x')
'aaa'.replace('a', 'b', 2)
'abc'.replace('', '-')
'aaa'.replace('aa', 'b')
'abc'|replace('b', 1)
123|replace('2', 'x')
'aaa'|replace('a', 'b', 1)
'aaa'.replace('a')
','.join(['a', 'b'])
','.join([1])
','.join('abc')
['a', 1, none]|join('-')
[]|join('-')
'abc'|join('.')
[1, 2]|join
'abc'.find('c')
'世界'.find('界')
'abc'.find('z')
'abca'.rfind('a')
'abc'.index('z')
'banana'.count('an')
'abc'.count('')
'12'.isdigit()
''.isdigit()
' '.isspace()
'aB'.isupper()
'AB1'.isupper()
'ab1'.islower()
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'abc'|first
'abc'|last
''|first
[]|first
[1, 2]|first
[1, 2]|last
(1, 2)|last
{'a': 1}|first
5|first
'abc'|list
'abc'|reverse
'世界'|reverse
[1, 2, 3]|reverse|list
[3, 1, 2]|sort
['b', 'A', 'c']|sort
['b', 'A', 'c']|sort(case_sensitive=true)
[3, 1, 2]|sort(reverse=true)
messages|sort(attribute='role')|map(attribute='role')|list
[1, 'a']|sort
[1, 1, 2, 1]|unique|list
['a', 'A', 'b']|unique|list
['a', 'A', 'b']|unique(case_sensitive=true)|list
'42'|int
' 42 '|int
'-42'|int
'+42'|int
'4_2'|int
'4.7'|int
'x'|int
'x'|int(9)
''|int
none|int
4.7|int
-4.7|int
true|int
'1e3'|int
nothing|int
'1.5'|float
'x'|float
'inf'|float
'-1e3'|float
3|float
'1_0.5'|float
[]|float
5|string
none|string
[1, 'a']|string
5|string|length
-3|abs
-3.5|abs
'a'|safe
'<b>'|safe
5|upper
'a'|nofilter
1 is defined
nothing is defined
nothing is not defined
none is none
nothing is none
1 is not none
'a' is string
1 is string
1 is number
1.5 is number
true is number
1 is integer
true is integer
1.5 is float
1 is float
true is boolean
true is true
1 is true
false is false
0 is false
{} is mapping
[] is mapping
[] is iterable
'a' is iterable
1 is iterable
{} is iterable
[] is sequence
'a' is sequence
{} is sequence
1 is sequence
nothing is iterable
nothing is sequence
messages is sequence
range is callable
1 is callable
3 is odd
4 is even
-3 is odd
4 is divisibleby 2
4 is divisibleby(3)
1 is eq 1
1 is equalto(1)
1 is ne 2
1 is lt 2
2 is ge 2
1 is in [1, 2]
3 is in [1, 2]
3 is not in [1, 2]
'a' is lower
'A' is upper
'aB' is lower
'trim' is filter
'nope' is filter
'odd' is test
1 is defined and 2 is defined
1 is defined or nothing.x
1 if nothing is defined else 2
not nothing is defined
1 + 1 is odd
'a' is nosuchtest
range(3)|list
range(1, 4)|list
range(5, 0, -2)|list
range(0)|list
range(3)[1]
range(3)|length
range(10, 0)|list
range(1, 2, 0)
range(1000000)|length
dict(a=1, b='x')
dict()
dict({'a': 1}, b=2)
namespace(a=1).a
namespace(a=1).b
namespace() is defined
strftime_now('%d %b %Y')
strftime_now('%Y-%m-%d %H:%M:%S %p %I %j %a %A %B %y %-d %e %%')
raise_exception('no: ' ~ 1)
1 | string + 'a'
'a' + 1|string
-1|abs
-'1'|int
'a'|upper + 'b'|upper
('a' + 'b')|upper
'a' 'b'|upper
[1, 2, 3,]
{'a': 1,}
(1, 2,)
[1, 2,, 3]
{'a' 1}
1 +
(1
[1
"abc
a b
1 2
'a' if
messages.0.role
messages|first|length
messages[0].content|trim|upper|length
bos_token + 'x' + eos_token
bos_token in '<s>abc'
tools is none
tools is defined
documents
custom is defined and custom
add_generation_prompt
not add_generation_prompt
'%s' == 'x'
{'a': {'b': [1, {'c': 'deep'}]}}['a']['b'][1].c
'}}' ~ '%}'
{'a': '}}'}
9223372036854775807
""".strip("\n").split("\n")

SNIPPETS = ["{{ " + expression + " }}" for expression in EXPRESSIONS]

SNIPPETS += [
    # text and white space
    "", "a", "a\n", "a\n\n", "\n", "\na", "a\r\nb\rc\n", "{", "{ {", "a{b}c", "%}", "}}", "#}",
    "{{ 1 }}\n", "{{ 1 }}\n\n", "{{ 1 }}\nx", " {{ 1 }} ", " {{- 1 -}} ", "a {{- 1 -}} b",
    "a\n {{- 1 }}", "{{ 1 -}}\n\n b", "{{+ 1 }}", "{{-1}}", "{{ -1 }}", "a{{- -1}}",
    "{% if true %}a{% endif %}", "{% if true %}\na\n{% endif %}\n", "  {% if true %}\n  a\n  {% endif %}\nb",
    "x {% if true %}\n  a\n  {% endif %}\nb", "{%- if true -%}\n a \n{%- endif -%}\n b",
    "  {%+ if true %}a{% endif %}", "  {%+ if true +%}\na{% endif +%}\nb", "a\n\t{% if true %}b{% endif %}",
    "a\n \n {% if true %}b{% endif %}", "{% if true %}a{% endif %}\n\n\nb", "{% if true %} {% endif %}",
    "{% set x = 1 %}\n{{ x }}", "  {% set x = 1 %}  \n{{ x }}", "a {#- c -#} b", "a {# c #} b", "a\n  {# c #}\nb",
    "  {# c #}\nb", "{# c\n\n #}b", "{# {{ x }} {% if %} #}b", "{#+ c +#}\nb", "{#--#}a", "{##}a", "{#-#}a",
    "{% raw %}{{ x }}{% if %}{% endraw %}", "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "{% raw %}\n {{ x }}\n {% endraw %}\n b", "  {% raw %}a{% endraw %}", "{% raw %}a", "{% raw %}{% endraw %}x",
    "{{ '\n' }}", "{{ 'a\nb' }}", "{{\n1\n}}", "{{ 1 }}{{ 2 }}", "{% if true -%}  a", "{{ 1", "{% if true", "{# a",
    "\u00a0{% if true %}a{% endif %}", "a\u3000{%- if true %}b{% endif %}", "{% if true -%}\u00a0a{% endif %}",
    "a\n{% if true %}{% endif %}\nb", "a\n{{ '' }}\nb", " {% if true %} {% if true %}\n a{% endif %}{% endif %}",
    # if
    "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}", "{% if 0 %}a{% elif 0 %}b{% else %}c{% endif %}",
    "{% if 0 %}a{% endif %}", "{% if nothing %}a{% else %}b{% endif %}", "{% if [] %}a{% else %}b{% endif %}",
    "{% if 'a' and 1 %}a{% endif %}", "{% if 1 %}", "{% endif %}", "{% else %}", "{% if %}{% endif %}",
    "{% if 1 %}{% else %}{% else %}{% endif %}", "{% if 1, %}a{% endif %}",
    # for
    "{% for x in [1, 2, 3] %}{{ x }}{% endfor %}", "{% for x in [] %}a{% else %}b{% endfor %}",
    "{% for x in nothing %}a{% else %}b{% endfor %}", "{% for x in 5 %}a{% endfor %}",
    "{% for x in none %}a{% endfor %}",
    "{% for x in 'abc' %}{{ x }}.{% endfor %}", "{% for x in '世界' %}{{ x }}.{% endfor %}",
    "{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
    "{% for x in [1, 2, 3] %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in [1, 2] %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [3] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{{ loop.depth }}{% endfor %}",
    "{% for x in [1, 2] %}{{ loop.nothing }}{% endfor %}", "{{ loop }}", "{{ loop.index }}",
    "{% for x in [1, 2, 3, 4] if x is even %}{{ loop.index }}{{ x }}{{ loop.last }}{% endfor %}",
    "{% for x in [1, 3] if x is even %}a{% else %}none{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in {'x': 1, 'y': 2}.items() %}{{ a }}{{ b }}{% endfor %}",
    "{% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %}", "{% for k, v in messages[0]|items %}{{ k }}={{ v }};{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in ['xy', 'zw'] %}{{ b }}{{ a }}{% endfor %}",
    "{% for (a, b) in [(1, 2)] %}{{ a }}{% endfor %}", "{% for a, in [(1,)] %}{{ a }}{% endfor %}",
    "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% break %}", "{% for x in [1] %}{% for y in [1, 2] %}{% break %}{% endfor %}{{ x }}{% endfor %}",
    "{% for x in [1, 2] %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in [1, 2] %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}",
    "{% for x in [1] %}{% endfor %}{{ x }}", "{% set x = 5 %}{% for x in [1] %}{% endfor %}{{ x }}",
    "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}",
    "{% for x in [1] %}", "{% for x %}{% endfor %}", "{% for 1 in [1] %}{% endfor %}", "{% for x in [1] %}{% if 1 %}{% endfor %}{% endif %}",
    "{% for x in messages[1:] %}{{ x.role }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% set g = [1, 2]|map('string') %}{{ g|join }}{{ g|join }}.", "{% set g = [1, 2]|select %}{{ g|first }}{{ g|list }}",
    "{% for x in [[1, 2], [3]] %}{% for y in x %}{{ y }}{% endfor %}|{% endfor %}",
    # set
    "{% set x = 1 %}{{ x }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set x, y = [1] %}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "{% set x %}a{{ 1 }}b{% endset %}{{ x }}{{ x|length }}",
    "{% set x | upper %}ab{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}ab{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{% endset %}{{ y }}.", "{% set none = 1 %}", "{% set 1 = 1 %}", "{% set x = %}", "{% set x = 1",
    "{% set ns = namespace(a=0) %}{% for x in [1, 2, 3] %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}",
    "{% set ns = namespace() %}{% set ns.b = 'q' %}{{ ns.b }}{{ ns.c }}", "{% set x = 1 %}{% set x.y = 2 %}", "{% set q.y = 2 %}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace(l=[]) %}{% for i in range(3) %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l }}",
    "{% set messages = messages[1:] %}{{ messages|length }}", "{% set x = [] %}{% set _ = x.append(1) %}{{ x }}",
    "{% set ns = namespace() %}{% set ns.t %}abc{% endset %}{{ ns.t }}",
    # macro
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c=2) }}",
    "{% macro m() %}x{% endmacro %}{{ m()|upper }}{{ m() ~ m() }}", "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% set v = 1 %}{% macro m() %}{{ v }}{% endmacro %}{% set v = 2 %}{{ m() }}", "{% macro m() %}{% set z = 1 %}{% endmacro %}{{ m() }}{{ z }}.",
    "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(3) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ m() }}{% macro m() %}{% endmacro %}",
    "{% macro m(x) %}{% for i in range(x) %}{{ i }}{% endfor %}{% endmacro %}{{ m(3) }}{{ m(0) }}.", "{% macro m() %}{{ loop.index }}{% endmacro %}{% for x in [1] %}{{ m() }}{% endfor %}",
    "{%- macro m(x) -%}\n  {{ x }}\n{%- endmacro -%}\n[{{ m(1) }}]",
    # with, generation
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}.",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}", "{% generation %}a{{ 1 }}{% endgeneration %}b",
    "{% generation %}\n a\n{% endgeneration %}\nb", "{% generation %}{% set z = 1 %}{% endgeneration %}{{ z }}.",
    "{% generation %}", "{% nosuchtag %}",
    # deferred errors
    "{% if false %}{{ 1|nofilter }}{% endif %}ok", "{{ 'x' if true else 1|nofilter }}", "{% if true %}{{ 1|nofilter }}{% endif %}",
    "{% if false %}{{ raise_exception('x') }}{% endif %}ok", "{% if true %}{{ raise_exception('it\\'s \"bad\"') }}{% endif %}",
    "{{ 'a' ~ raise_exception('deep') }}", "{% set x = raise_exception('s') %}", "{{ messages[0].content.nothing.deeper }}",
    "{{ (messages|map(attribute='role')|unique|list|length) ~ (messages|map(attribute='content')|map('trim')|join('+')) }}",
    "{{- bos_token -}}{% for m in messages %}{{ m['role'].upper()[:1] + m['role'][1:] }}: {{ m['content'].strip().replace('é', 'e') }}{{ eos_token if loop.last else '\\n' }}{% endfor %}",
]
