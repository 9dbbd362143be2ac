"""Which regular expressions there are, and what they read.

A regular expression can take time that grows faster than its input. None reads what a client sends: that is
parsed in Rust, in linear time (tests/abuse/test_growth.py). One that is added has to be listed here.
"""

from __future__ import annotations

import ast
from pathlib import Path

from citius.settings.envfile import _STATEMENT

PACKAGE = Path(__file__).parents[2] / "python/citius"

READS = {
    "cluster/engines.py": {
        r"(?<=://)\S*@|(?<!\S)(?!\S*://)\S*@": "an error of an engine's client",
        r"(?<=password=)[^&\s]*": "an error of an engine's client",
    },
    "pg/types.py": {r"[0-9]{1,9}": "the version of a server"},
    "pg/sqlalchemy/range_text.py": {
        r"f'empty|([\\[(]){_BOUND},{_BOUND}([\\])])'": "a range, as PostgreSQL writes it",
        r'\\(.)|"(")': "a bound of it",
    },
    "http/urls.py": {
        r"((?:https?://[A-Za-z0-9.:-]+)?)"
        r"/(?!/)[A-Za-z0-9_.~!$&'()*+,;=:@/-]{0,2048}(?:\?[A-Za-z0-9_.~!$&'()*+,;=:@/?-]{0,2048})?": (
            "the URL of a request; each part has one way to match, none is tried again"
        ),
        r"[\x00-\x20\x7f\\]": "the URL of a request",
    },
    "http/gateway/declared.py": {
        r"\{([A-Za-z_]\w*)(?::\w+)?\}": "the pattern of a route",
        r"[!#$%&'*+.^_`|~0-9A-Za-z:-]+": "the name of a gateway",
    },
    "serving/acme/store.py": {r"[A-Za-z0-9_-]{16,}={0,2}": "a key in a file of the server's owner"},
    "web/middleware/cors.py": {
        "origin_regex": "an origin of at most 200 characters; the expression is the application's",
    },
    "sqlite/texts.py": {
        r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\$([0-9]+)": "a statement",
        r"(?:[\s;\ufeff]+|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*(?:\*/|$))*": "a statement",
        r"pragma\s+(?:\w+\s*\.\s*)?(\w+)\s*([=(]?)": "a statement",
        r"create\s+temp(?:orary)?\b": "a statement",
        r"--[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|\ufeff"
        r"|('[^']*+'|\"[^\"]*+\"|`[^`]*+`|\[[^\]]*+\]|[\w$\x80-\U0010ffff]++|\S)": "a statement",
    },
    "sqlite/sessions.py": {
        r"(?>[\s;\ufeff]|--[^\n]*+(?:\n|\Z)|/\*(?>.*?(?:\*/|\Z)))*+vacuum\b": "a statement",
    },
    "web/execution/numba_handlers.py": {
        r"\x1b\[[0-9;]*m": "an error of numba's",
        r'File "([^"]+)", line (\d+)': "an error of numba's",
        "pattern": "an error of numba's",
        r"\((\d+)\)$": "an error of numba's",
        r"\W": "the name of a function of the application's",
    },
    "web/execution/numba_go.py": {r"\(\*(\w+)\)\(": "citius.h"},
    "web/execution/compiled_handlers.py": {
        r"^__pyx_f_(?:\d+[A-Za-z]\w*?_)?": "the name of a function of a library's"
    },
    "web/execution/foreign_executors.py": {r"^\w+Error: .+$": "an error of a sub-interpreter's"},
    "web/binding/signature.py": {r"\{([^{}:]+)(?::([^{}]*))?\}": "the pattern of a route"},
    "web/openapi/document.py": {r"\{[^}]*\}": "the path of a route"},
    "settings/loading.py": {
        r"\w+": "a message about an option",
        r"CITIUS(_\w+)?_(SERVICE_(HOST|PORT(_\w+)?)|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)": (
            "the name of an environment variable"
        ),
    },
    "web/declarations/parameters/sources.py": {
        "TOKEN": "the alias of a header or cookie",
        "pattern": "none: it is compiled to see whether it is one",
    },
    "web/declarations/checks.py": {
        "TOKEN": "the method of a route",
    },
    "web/declarations/path_hints.py": dict.fromkeys(
        (
            r"^\^|\\|\(\?|\.[*+]|\{\w+:\w*[^\w{}]",
            r"\(\?P?<([A-Za-z_]\w*)>|\{([A-Za-z_]\w*):",
            r"<([^<>]*)>",
            r"\(.*",
            r"(?<=/):([A-Za-z_]\w*)(\??)([*+]?)",
            r"(?<=/)\[{1,2}(\.{3})?([A-Za-z_]\w*)\]{1,2}(?=/|$)",
            r"(?<=/)\*+([A-Za-z_]\w*)?[^/]*|\*+$",
            r"\{(?=\*|\w+[.?*+])\*{0,2}([A-Za-z_]\w*)(\.{3}|[?*+]?)\}",
        ),
        "the pattern of a route",
    ),
    "unknown_options.py": {
        "what": "none: the name of a function is escaped",
        r"f'{re.escape(what)}(?!\\w)(?:\\([^()]*\\))?'": "a message about an option",
        r"(?:\.py|>):\d+": "a message about an option",
        r"takes (?:from \d+ to )?\d+ positional arguments? but \d+ (?:\w+ )?(?:was|were) given": (
            "an error of a call"
        ),
    },
    "web/routing/declared_routes.py": {r"\{[^{}:]+": "the pattern of a route"},
    "web/routing/rpc/proto.py": {
        r"\W": "the name of a field of the application's",
        r"_+(.)?": "the name of a field of the application's",
        r"[^A-Za-z0-9]+": "the name of a procedure or of a class of the application's",
    },
    "settings/envfile.py": {
        r"\\([\\'])": "a value in an environment file",
        r"\\([\\'\"abfnrtv])": "a value in an environment file",
        r"\s+#.*": "a value in an environment file",
        r"(?:\s+|[#;][^\r\n]*)*": "an environment file",
        _STATEMENT.pattern: "an environment file",
        r"\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?\}": "a value in an environment file",
    },
}
"""What each expression is matched with, by module and expression."""


def expressions_of(path: Path) -> set[str]:
    """The first argument of each call of the module ``re``: a text, or the source of what makes one."""
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        str(call.args[0].value) if isinstance(call.args[0], ast.Constant) else ast.unparse(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "re"
        and call.args
    }  # fmt: skip


def test_every_regular_expression_is_listed_with_what_it_reads() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): expressions
        for path in PACKAGE.rglob("*.py")
        if (expressions := expressions_of(path))
    }
    listed = {module: set(expressions) for module, expressions in READS.items()}
    assert found == listed


def test_re_is_only_used_by_its_name() -> None:
    """``from re import compile`` would hide an expression from the test above."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("re", "regex"), path
            if isinstance(node, ast.Import):
                assert not any(name.name == "re" and name.asname for name in node.names), path
