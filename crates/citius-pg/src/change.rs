//! What a statement changes of the session that executes it, beyond the database.
//!
//! In: the text of one statement. Out: a [`Change`]. The first word decides, and for functions that may stand anywhere their
//! names; one pass over one input. What a function of the application does is not seen; `DO` and `CALL` are [`Change::Code`].

use memchr::memchr2_iter;

/// What a statement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that outlives it.
    Nothing,
    /// It begins or ends a transaction.
    Transaction,
    /// It begins or ends a savepoint.
    Savepoint,
    /// Settings, locks, temporary tables or channels stay with the session behind it.
    Session,
    /// What no command undoes stays with the session: a loaded library, connections to other servers.
    Lasting,
    /// The names of prepared statements, which the pool has given.
    Names,
    /// It executes code that may change anything of the session.
    Code,
    /// Where names are looked up, for the rest of its transaction.
    Path,
    /// Where names are looked up, for the rest of the session.
    SessionPath,
    /// It gives a statement a name.
    Prepare,
    /// The server waits for its data, and takes the statements behind it for them: `COPY … FROM STDIN`.
    Stream,
}

impl Change {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Nothing,
        Self::Transaction,
        Self::Savepoint,
        Self::Session,
        Self::Lasting,
        Self::Names,
        Self::Code,
        Self::Path,
        Self::SessionPath,
        Self::Prepare,
        Self::Stream,
    ];
}

/// Has a session be what it was when it was connected: what statements, blocks and code may have left, beside a transaction.
pub const RESET: &str = "SELECT pg_catalog.pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET SESSION AUTHORIZATION; \
     RESET ROLE; RESET ALL; DISCARD SEQUENCES; DISCARD TEMP";

/// Deallocates the statements of `PREPARE`; those of the protocol stay.
pub const RESET_NAMES: &str = "DO $$DECLARE n text; BEGIN \
     FOR n IN SELECT name FROM pg_catalog.pg_prepared_statements WHERE from_sql LOOP \
     EXECUTE pg_catalog.format('DEALLOCATE %I', n); END LOOP; END$$; ";

/// What a statement changes.
pub fn change_of(sql: &str) -> Change {
    let mut words = Tokens(sql).filter_map(Token::keyword);
    let [first, second, third] = core::array::from_fn(|_| words.next().unwrap_or(""));
    if is(first, &["BEGIN", "START", "COMMIT", "END", "ABORT"])
        || is(first, &["PREPARE"]) && is(second, &["TRANSACTION"])
    {
        return Change::Transaction;
    }
    let behind = |noise: &[&str]| if is(second, noise) { third } else { second };
    match () {
        () if is(first, &["ROLLBACK"]) => {
            if is(behind(&["WORK", "TRANSACTION"]), &["TO"]) {
                Change::Savepoint
            } else {
                Change::Transaction
            }
        }
        () if is(first, &["SAVEPOINT", "RELEASE"]) => Change::Savepoint,
        () if is(first, &["DISCARD"]) && is(second, &["ALL", "PLANS"]) => Change::Names,
        () if is(first, &["DEALLOCATE"]) && is(behind(&["PREPARE"]), &["ALL"]) => Change::Names,
        () if is(first, &["LOAD"]) || calls_any(sql, LASTING) || sets_seed(sql, first) => {
            Change::Lasting
        }
        () if is(first, &["DEALLOCATE", "PREPARE"]) => Change::Prepare,
        () if is(first, &["DO", "CALL"]) || executes_text(sql) => {
            if is_lasting_within(sql) {
                Change::Lasting
            } else if deallocates(sql) {
                Change::Names
            } else {
                Change::Code
            }
        }
        // What it executes was looked at when it got its name, but not for the statements behind it.
        () if is(first, &["EXECUTE"]) => Change::SessionPath,
        () => match (
            sets_path(sql, first, second),
            changes_session(sql, first, second),
        ) {
            (false, false) if is(first, &["COPY"]) && is_from_client(sql) => Change::Stream,
            (false, false) => Change::Nothing,
            (false, true) => Change::Session,
            (true, false) if is_path_known(sql, first) => Change::Path,
            (true, _) => Change::SessionPath,
        },
    }
}

/// What each of the statements of a text changes, which the simple protocol executes one after the other.
pub fn changes_of(sql: &str) -> impl Iterator<Item = Change> + '_ {
    let mut rest = Some(sql);
    core::iter::from_fn(move || {
        let text = rest.take()?;
        let mut tokens = Tokens(text);
        let is_followed = tokens.any(|token| token.is(b';'));
        let statement = &text[..text.len() - tokens.0.len()];
        rest = is_followed.then_some(tokens.0);
        Some(change_of(statement))
    })
}

/// Whether it executes a text, which is not looked at, or has a name with escapes, `U&"…"`, which may be any.
fn executes_text(sql: &str) -> bool {
    let has_escapes = find(sql, "u&\"") && !names(sql).any(|(name, _)| name.contains('\\'));
    has_escapes || calls_any(sql, EXECUTE_TEXT)
}

/// Whether a function is called whose name has one of these parts.
fn calls_any(sql: &str, parts: &[&str]) -> bool {
    let has_any = |text: &str| parts.iter().any(|part| find(text, part));
    has_any(sql) && names(sql).any(|(name, _)| has_any(name))
}

/// Whether a text that is executed has within it what no command undoes.
fn is_lasting_within(sql: &str) -> bool {
    LASTING.iter().any(|part| find(sql, part)) || loads(sql)
}

/// Whether a text has a `DEALLOCATE ALL` in it, at any depth of quotes.
fn deallocates(sql: &str) -> bool {
    if !find(sql, "deallocate") {
        return false;
    }
    let is_sign = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let mut before = "";
    sql.split(is_sign)
        .filter(|word| !word.is_empty())
        .any(|word| {
            let is_all = is(before, &["DEALLOCATE"]) && is(word, &["ALL"]);
            if !(is(before, &["DEALLOCATE"]) && is(word, &["PREPARE"])) {
                before = word;
            }
            is_all
        })
}

/// Whether a text has a `LOAD '…'` in it, at any depth of quotes.
fn loads(sql: &str) -> bool {
    sql.char_indices().any(|(at, _)| {
        let (before, behind) = (&sql[..at], sql.get(at + 4..).unwrap_or(""));
        if !find_at(&sql[at..], "load") || before.ends_with(is_of_word) {
            return false;
        }
        // A value that is 'load' has no more behind it.
        let is_value = before.ends_with('\'') && behind.starts_with('\'');
        let rest = behind.trim_start_matches(is_space);
        let name = rest.strip_prefix(['E', 'e']).unwrap_or(rest);
        (name.starts_with('\'') || rest.starts_with('$')) && (!is_value || behind.starts_with("''"))
    })
}

/// Whether it sets the seed of `random()`, which is a setting by its name only: `LOCAL` does not undo it, and nor does `RESET`.
fn sets_seed(sql: &str, first: &str) -> bool {
    if !find(sql, "seed") {
        return false;
    }
    let mut words = keywords(sql).skip(1).take(3);
    let set = words.find(|word| !is(word, &["SESSION", "LOCAL"]));
    is(first, &["SET"]) && set.is_some_and(|word| is(word, &["SEED"]))
        || calls(sql, "set_config", |arguments| {
            is(arguments.first, &["SEED"])
        })
}

/// In the names of the functions that execute a text: those of the server, and of its modules tablefunc and xml2.
const EXECUTE_TEXT: &[&str] = &[
    "query_to_xml",
    "ts_stat",
    "ts_rewrite",
    "crosstab",
    "connectby",
    "xpath_table",
];

/// In the names of functions that leave with the session what no command undoes: connections of dblink, what it has of replication
/// and of a backup, the seed of `random()`, what isn and sepgsql note.
const LASTING: &[&str] = &[
    "dblink_connect",
    "dblink_disconnect",
    "dblink_open",
    "pg_replication_origin_session_",
    "create_logical_replication_slot",
    "create_physical_replication_slot",
    "copy_logical_replication_slot",
    "copy_physical_replication_slot",
    "pg_backup_start",
    "pg_start_backup",
    "setseed",
    "isn_weak",
    "sepgsql_setcon",
];

/// Whether a text is one COPY: the simple protocol would execute whatever stands behind it.
pub fn is_copy(sql: &str) -> bool {
    let mut tokens = Tokens(sql).skip_while(|token| token.is(b';'));
    let is_first = tokens
        .next()
        .and_then(Token::keyword)
        .is_some_and(|word| is(word, &["COPY"]));
    is_first
        && tokens
            .skip_while(|token| !token.is(b';'))
            .all(|token| token.is(b';'))
}

/// Whether the data of a COPY come from the client, which has to know that it is one.
pub fn is_from_client(sql: &str) -> bool {
    let (mut depth, mut is_behind_from) = (0_i32, false);
    (find(sql, "stdin") || find(sql, "stdout"))
        && is(first_word(sql), &["COPY"])
        && Tokens(sql).any(|token| {
            depth += i32::from(token.is(b'(')) - i32::from(token.is(b')'));
            let Token::Word(word) = token else {
                is_behind_from = false;
                return false;
            };
            // The server takes either word for the client.
            let is_client = is_behind_from && is(word, &["STDIN", "STDOUT"]);
            is_behind_from = depth == 0 && is(word, &["FROM"]);
            is_client
        })
}

/// Whether it says where names are looked up from then on.
fn sets_path(sql: &str, first: &str, second: &str) -> bool {
    let is_setting = is(first, &["SET", "RESET"]) || updates_settings(sql);
    if !is_setting && !find(sql, "set_config") {
        return false;
    }
    // A path has `"$user"` in it.
    find(sql, "search_path")
        || is_setting && sets_role(sql)
        || !is_setting
            && calls(sql, "set_config", |arguments| {
                is(arguments.first, &["ROLE", "SESSION_AUTHORIZATION"])
            })
        || is_setting && (is(second, &["SCHEMA", "ALL"]) || has_words(sql, &["LOCAL", "SCHEMA"]))
        || !is_setting && calls(sql, "set_config", |arguments| arguments.first.is_empty())
}

/// Whether a `SET` or `RESET` is about the user.
fn sets_role(sql: &str) -> bool {
    let mut words = keywords(sql).skip(1).take(3);
    let first = words.find(|word| !is(word, &["SESSION", "LOCAL"]));
    first.is_some_and(|word| is(word, &["ROLE", "AUTHORIZATION", "SESSION_AUTHORIZATION"]))
}

/// Whether what is made on this path is not temporary, and so does not stay with the session, as far as the text says. Of a parameter
/// [`is_temporary`] says.
fn is_path_known(sql: &str, first: &str) -> bool {
    if is_temporary(sql.as_bytes()) || sql.contains('\\') {
        return false;
    }
    // What is computed may be anything.
    is(first, &["SET", "RESET"])
        || names(sql).all(|(name, rest)| {
            let mut tokens = Tokens(rest);
            let mut next = || tokens.next();
            !name.eq_ignore_ascii_case("set_config")
                || matches!(
                    (next(), next(), next(), next(), next()),
                    (
                        Some(Token::Sign(b'(')),
                        Some(Token::Text(_) | Token::Word(_)),
                        Some(Token::Sign(b',')),
                        Some(Token::Text(_) | Token::Word(_)),
                        Some(Token::Sign(b',')),
                    )
                )
        })
}

/// Whether a search path has the schema of temporary tables in it, by its own name or that of the session's own one.
pub fn is_temporary(path: &[u8]) -> bool {
    let wanted = b"pg_temp";
    let mut windows = path.windows(wanted.len());
    windows.any(|window| window.eq_ignore_ascii_case(wanted))
}

/// Whether settings, locks, temporary tables or channels stay with the session behind it.
fn changes_session(sql: &str, first: &str, second: &str) -> bool {
    if is(first, &["SET"]) {
        return !is(second, &["LOCAL", "TRANSACTION", "CONSTRAINTS"]) || sets_dotted(sql);
    }
    if is(first, &["CREATE"]) && !is_executed_at_once(sql) {
        return makes_temporary(sql);
    }
    is(first, &["RESET", "LISTEN", "UNLISTEN", "DISCARD"])
        || is(first, &["DECLARE"]) && has_words(sql, &["WITH", "HOLD"])
        || updates_settings(sql)
        || calls_lock(sql)
        || calls(sql, "set_config", |arguments| !arguments.end_with_true)
        // A setting of pg_trgm.
        || calls(sql, "set_limit", |_| true)
        // A name with escapes, U&"…", may be any function's.
        || sql.contains('\\') && names(sql).any(|(name, _)| name.contains('\\'))
        || asks_for_sequence(sql)
        || is(first, &["CREATE", "SELECT", "WITH", "EXPLAIN", "IMPORT"]) && makes_temporary(sql)
}

/// Whether it asks what another request has made of a sequence; for what it has made before, a statement can ask.
fn asks_for_sequence(sql: &str) -> bool {
    (find(sql, "lastval") || find(sql, "currval"))
        && names(sql)
            .map(|(name, _)| name)
            .find(|name| is(name, &["LASTVAL", "CURRVAL", "NEXTVAL"]))
            .is_some_and(|name| !is(name, &["NEXTVAL"]))
}

/// Whether it sets a name whose first part is the second word: `SET local.a`.
fn sets_dotted(sql: &str) -> bool {
    let mut tokens = Tokens(sql).skip_while(|token| token.keyword().is_none());
    tokens.nth(2).is_some_and(|token| token.is(b'.'))
}

/// Whether the query of a `CREATE` is executed by it; that of a view or a function is not.
fn is_executed_at_once(sql: &str) -> bool {
    let mut kinds = keywords(sql).skip(1).take(3);
    kinds.any(|word| is(word, &["TABLE", "MATERIALIZED"]))
}

/// Whether it makes something temporary: `CREATE OR REPLACE TEMP`, `SELECT … INTO LOCAL TEMP`, `CREATE TABLE pg_temp.…`.
fn makes_temporary(sql: &str) -> bool {
    if !find(sql, "temp") {
        return false;
    }
    let mut before = "";
    let (mut depth, mut is_query, mut is_at_start) = (0_i32, false, true);
    // What `INSERT INTO temp` names is a table; in `SELECT 1 AS insert INTO temp a` it is a column that has this name.
    let mut writes = false;
    Tokens(sql).any(|token| {
        let Some(word) = token.keyword() else {
            depth += i32::from(token.is(b'(')) - i32::from(token.is(b')'));
            is_at_start = token.is(b'(');
            return false;
        };
        let is_made = is(before, &["CREATE", "REPLACE", "LOCAL", "GLOBAL"])
            || is(before, &["INTO"]) && !writes;
        // `pg_temp_3` may be the session's own.
        let found = find_at(word, "pg_temp") || is_made && is(word, &["TEMP", "TEMPORARY"]);
        if is(word, &["INSERT", "MERGE"]) {
            writes = is_at_start || depth == 0 && !is_query;
        } else if !is(word, &["INTO"]) {
            writes = false;
        }
        is_query |= depth == 0 && is(word, &["SELECT", "TABLE", "VALUES"]);
        (before, is_at_start) = (word, false);
        found
    })
}

fn find_at(word: &str, start: &str) -> bool {
    let found = word.as_bytes().get(..start.len());
    found.is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
}

/// Whether a word is one of these keywords.
fn is(word: &str, keywords: &[&str]) -> bool {
    keywords.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// Whether it takes or gives back a lock that outlives its transaction.
fn calls_lock(sql: &str) -> bool {
    find(sql, "advisory_")
        && names(sql).any(|(name, _)| {
            let has = |part: &str| find(name, part);
            has("pg_") && has("advisory_") && !has("advisory_xact_") && has("lock")
        })
}

/// The arguments of a call, as far as they are looked at.
struct Arguments<'a> {
    /// The text that is the first one; empty if it may be any.
    first: &'a str,
    end_with_true: bool,
}

/// Whether a function of this name is called with such arguments.
fn calls(sql: &str, function: &str, is_wanted: impl Fn(&Arguments<'_>) -> bool) -> bool {
    find(sql, function)
        && names(sql).any(|(name, rest)| {
            name.eq_ignore_ascii_case(function) && is_wanted(&arguments_of(rest))
        })
}

/// What is between the parentheses that `rest` begins with.
fn arguments_of(rest: &str) -> Arguments<'_> {
    let tokens = Tokens(rest).skip(1);
    let mut start = tokens.clone();
    let first = match (start.next(), start.next()) {
        // One with escapes, or in several parts, may be any.
        (Some(Token::Text(text)), Some(Token::Sign(b','))) if !text.contains('\\') => text,
        _ => "",
    };
    let mut depth = 1_u32;
    let mut ends: [Option<Token<'_>>; 4] = [None; 4];
    for token in tokens {
        match token {
            Token::Sign(b'(') => depth += 1,
            Token::Sign(b')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        ends = [ends[1], ends[2], ends[3], Some(token)];
    }
    let [name, equals, before, last] = ends;
    let is_sign = |token: Option<Token<'_>>, sign| token.is_some_and(|token| token.is(sign));
    let is_named = is_sign(equals, b'=') && is_sign(before, b'>');
    let is_local = matches!(name, Some(Token::Word(name)) if is(name, &["IS_LOCAL"]));
    // `true`, `is_local => true`, `'t'`; anything else is not known.
    let end_with_true = (is_sign(before, b',') || is_named && is_local)
        && match last {
            Some(Token::Word(word)) => is(word, &["TRUE"]),
            Some(Token::Text(text)) => is(text, &["T", "TRUE", "ON", "1"]),
            _ => false,
        };
    Arguments {
        first,
        end_with_true,
    }
}

/// The names that are followed by a parenthesis, and what follows: functions.
fn names(sql: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut tokens = Tokens(sql);
    core::iter::from_fn(move || {
        loop {
            let token = tokens.next()?;
            if let Token::Word(name) | Token::Name(name) = token {
                let rest = tokens.0;
                if Tokens(rest).next().is_some_and(|token| token.is(b'(')) {
                    return Some((name, rest));
                }
            }
        }
    })
}

fn keywords(sql: &str) -> impl Iterator<Item = &str> {
    Tokens(sql).filter_map(Token::keyword)
}

/// Whether these words stand side by side.
fn has_words(sql: &str, wanted: &[&str; 2]) -> bool {
    let mut before = "";
    find(sql, wanted[1])
        && keywords(sql).any(|word| {
            let found = is(before, &[wanted[0]]) && is(word, &[wanted[1]]);
            before = word;
            found
        })
}

/// Whether it updates the view `pg_settings`, a rule of which calls `set_config`: `UPDATE ONLY (a.pg_catalog.pg_settings)`.
fn updates_settings(sql: &str) -> bool {
    if !find(sql, "pg_settings") {
        return false;
    }
    let mut is_table = false;
    Tokens(sql).any(|token| match token {
        Token::Word(word) | Token::Name(word) => {
            let found = is_table && is(word, &["PG_SETTINGS"]);
            // The parts of its name, as long as there are dots.
            is_table = is(word, &["UPDATE", "ONLY"]);
            found
        }
        Token::Sign(sign) => {
            is_table = sign == b'.' || is_table && sign == b'(';
            false
        }
        Token::Text(_) => false,
    })
}

/// Whether `part` stands anywhere in a text, in upper or lower case.
///
/// An underscore of it is looked for first, else its first byte: a text may be large, and there are many parts.
fn find(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let at = part.iter().position(|byte| *byte == b'_').unwrap_or(0);
    let Some(byte) = part.get(at) else {
        return true;
    };
    memchr2_iter(byte.to_ascii_lowercase(), byte.to_ascii_uppercase(), text).any(|found| {
        let rest = found.checked_sub(at).and_then(|start| text.get(start..));
        let there = rest.and_then(|rest| rest.get(..part.len()));
        there.is_some_and(|there| there.eq_ignore_ascii_case(part))
    })
}

/// What a statement is made of; comments and spaces are left out.
#[derive(Clone, Copy)]
enum Token<'a> {
    /// A keyword or a name.
    Word(&'a str),
    /// A name between double quotes.
    Name(&'a str),
    /// What is between quotes or dollars.
    Text(&'a str),
    Sign(u8),
}

impl<'a> Token<'a> {
    fn keyword(self) -> Option<&'a str> {
        match self {
            Self::Word(word) | Self::Name(word) => Some(word),
            Self::Text(_) | Self::Sign(_) => None,
        }
    }

    fn is(self, sign: u8) -> bool {
        matches!(self, Self::Sign(own) if own == sign)
    }
}

#[derive(Clone)]
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.0;
            let first = rest.chars().next()?;
            if rest.starts_with("--") || rest.starts_with("/*") {
                self.0 = after_comment(rest);
            } else if first == '\'' || first == '"' {
                let (inner, behind) = quoted(&rest[1..], first as u8);
                self.0 = behind;
                return Some(if first == '"' {
                    Token::Name(inner)
                } else {
                    Token::Text(inner)
                });
            } else if let Some((inner, behind)) = dollar_quoted(rest) {
                self.0 = behind;
                return Some(Token::Text(inner));
            } else if is_of_word(first) {
                let end = rest
                    .find(|letter| !is_of_word(letter))
                    .unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                // E'…' has escapes.
                if word.eq_ignore_ascii_case("E") && behind.starts_with('\'') {
                    let (inner, behind) = escaped(&behind[1..]);
                    self.0 = behind;
                    return Some(Token::Text(inner));
                }
                self.0 = behind;
                return Some(Token::Word(word));
            } else {
                self.0 = &rest[first.len_utf8()..];
                if !is_space(first) {
                    return Some(Token::Sign(u8::try_from(first).unwrap_or(b'?')));
                }
            }
        }
    }
}

/// As the server has it: all that is not ASCII belongs to a word, be it a sign or a space.
fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$' || !letter.is_ascii()
}

/// The space that the server has; the vertical one since version 16.
fn is_space(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

/// What is between quotes, and what follows; a quote twice is one of the text.
fn quoted(inner: &str, quote: u8) -> (&str, &str) {
    let end = end_of_quoted(inner, quote, false);
    (&inner[..end], inner.get(end + 1..).unwrap_or(""))
}

/// The text of `E'…'`, and what follows; the parts on further lines have escapes, too.
fn escaped(inner: &str) -> (&str, &str) {
    let mut end = end_of_quoted(inner, b'\'', true);
    loop {
        let behind = inner.get(end + 1..).unwrap_or("");
        let mut rest = behind;
        loop {
            rest = rest.trim_start_matches(is_space);
            if !rest.starts_with("--") {
                break;
            }
            rest = after_comment(rest);
        }
        let between = &behind[..behind.len() - rest.len()];
        if !rest.starts_with('\'') || !between.contains(['\n', '\r']) {
            return (&inner[..end], behind);
        }
        let start = inner.len() - rest.len() + 1;
        end = start + end_of_quoted(&inner[start..], b'\'', true);
    }
}

/// Where the closing quote is.
fn end_of_quoted(inner: &str, quote: u8, has_escapes: bool) -> usize {
    let bytes = inner.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if has_escapes && byte == b'\\' {
            at += 1;
        } else if byte == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return at;
            }
            at += 1;
        }
        at += 1;
    }
    inner.len()
}

/// The text of `$tag$ … $tag$`, and what follows; `None` for `$1`.
fn dollar_quoted(rest: &str) -> Option<(&str, &str)> {
    let tag = rest.strip_prefix('$')?;
    let end = tag.find('$')?;
    let is_tag = |letter: char| letter != '$' && is_of_word(letter);
    if tag.starts_with(|letter: char| letter.is_ascii_digit()) || !tag[..end].chars().all(is_tag) {
        return None;
    }
    let (mark, inner) = rest.split_at(end + 2);
    let found = inner.find(mark);
    Some(found.map_or((inner, ""), |at| (&inner[..at], &inner[at + mark.len()..])))
}

/// The word that a statement begins with; empty where there is none.
pub fn first_word(sql: &str) -> &str {
    keywords(sql).next().unwrap_or("")
}

/// What follows a comment, which may have others in it.
fn after_comment(sql: &str) -> &str {
    if sql.starts_with("--") {
        return sql.trim_start_matches(|letter| !matches!(letter, '\n' | '\r'));
    }
    let mut depth = 0_usize;
    let mut rest = sql;
    while let Some(at) = rest.find(['/', '*']) {
        rest = &rest[at..];
        let (is_begin, is_end) = (rest.starts_with("/*"), rest.starts_with("*/"));
        depth = depth + usize::from(is_begin) - usize::from(is_end);
        rest = &rest[if is_begin || is_end { 2 } else { 1 }..];
        if depth == 0 {
            return rest;
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::Change::{
        Code, Lasting, Names, Nothing, Path, Prepare, Savepoint, Session, SessionPath, Stream,
        Transaction,
    };
    use super::{change_of, changes_of, find, is_copy};
    use alloc::format;

    #[test]
    fn parts_are_found_wherever_they_stand() {
        for part in ["temp", "set_config", "u&\"", "_x", "x_"] {
            let upper = part.to_ascii_uppercase();
            let longer = format!("{part}{part}");
            for text in [part, &upper, &longer] {
                for (before, behind) in [("", ""), ("é_t", ""), ("s", "_"), ("set_confi", "x")] {
                    assert!(find(&format!("{before}{text}{behind}"), part), "{part}");
                }
            }
            for end in 0..part.len() {
                let cut = &part[..end];
                assert!(
                    !find(cut, part) && !find(&format!("{cut} {part}").replace(part, cut), part)
                );
            }
        }
    }

    #[test]
    fn one_copy_and_nothing_else() {
        for sql in [
            "COPY a TO STDOUT",
            " /* a; b */ copy (SELECT ';') FROM STDIN ; ",
            "COPY a FROM STDIN -- ; SELECT",
        ] {
            assert!(is_copy(sql), "{sql}");
        }
        for sql in [
            "",
            "SELECT 1",
            "COPY a TO STDOUT; SET ROLE b",
            "BEGIN; COPY a TO STDOUT",
        ] {
            assert!(!is_copy(sql), "{sql}");
        }
    }

    const CHANGES: &[(&str, super::Change)] = &[
        ("BEGIN", Transaction),
        (
            " ; -- a\n/* b /* c */ */ begin isolation level serializable",
            Transaction,
        ),
        ("START TRANSACTION", Transaction),
        ("commit and chain", Transaction),
        ("END", Transaction),
        ("ABORT;", Transaction),
        ("ROLLBACK", Transaction),
        ("ROLLBACK PREPARED 'a'", Transaction),
        ("PREPARE TRANSACTION 'a'", Transaction),
        ("ROLLBACK TO a", Savepoint),
        ("ROLLBACK WORK TO SAVEPOINT a", Savepoint),
        ("SAVEPOINT a", Savepoint),
        ("RELEASE a", Savepoint),
        ("SET search_path = a", SessionPath),
        ("SET SCHEMA 'a'", SessionPath),
        ("set session role a", SessionPath),
        ("SET ROLE a", SessionPath),
        ("SET LOCAL ROLE a", Path),
        ("RESET ROLE", SessionPath),
        ("SET SESSION SESSION AUTHORIZATION a", SessionPath),
        ("SET LOCAL SESSION AUTHORIZATION a", Path),
        ("SET LOCAL app.role = 'a'", Nothing),
        ("SELECT set_config('role', $1, true)", Path),
        ("SELECT set_config('app.role', $1, true)", Nothing),
        ("SET/**/TIME ZONE 'UTC'", Session),
        ("SET LOCAL search_path = a", Path),
        ("set local schema 'a'", Path),
        ("SET LOCAL statement_timeout = 1", Nothing),
        ("SET TRANSACTION READ ONLY", Nothing),
        ("SET local.tenant = 'a'", Session),
        (" ; SET/**/\"local\" . tenant TO 'a'", Session),
        ("SET transaction.a = 'a'", Session),
        ("SET constraints.a = 'a'", Session),
        ("SET session.a = 'a'", Session),
        ("SET LOCAL local.tenant = 'a'", Nothing),
        ("RESET ALL", SessionPath),
        ("LISTEN a", Session),
        ("LOAD 'a'", Lasting),
        ("PREPARE a AS SELECT 1", Prepare),
        ("DEALLOCATE a", Prepare),
        ("DO $$BEGIN SET ROLE a; END$$", Code),
        ("/* a */ CALL a()", Code),
        ("DEALLOCATE ALL", Names),
        ("deallocate prepare all", Names),
        ("DISCARD ALL", Names),
        ("DISCARD TEMP", Session),
        ("CREATE TEMP TABLE a (x int)", Session),
        ("CREATE LOCAL TEMPORARY TABLE a (x int)", Session),
        ("CREATE OR REPLACE TEMP VIEW a AS SELECT 1", Session),
        ("CREATE TABLE temp_a (x int)", Nothing),
        ("SELECT 1 INTO TEMP a", Session),
        ("SELECT 1 INTO LOCAL TEMPORARY TABLE a", Session),
        ("SELECT 1 AS insert INTO TEMP a", Session),
        ("SELECT (1) merge INTO TEMP a", Session),
        ("(SELECT (1) insert INTO TEMPORARY TABLE a)", Session),
        (
            "WITH a AS (SELECT 1) SELECT 1 AS insert INTO TEMP a",
            Session,
        ),
        (
            "WITH a AS (VALUES (1)) SELECT (1) insert INTO TEMP overriding",
            Session,
        ),
        ("WITH a AS (SELECT 1) INSERT INTO temp TABLE a", Nothing),
        (
            "WITH a AS (INSERT INTO temp SELECT 1 RETURNING 1) SELECT * FROM a",
            Nothing,
        ),
        ("EXPLAIN (ANALYZE) MERGE INTO temp USING a ON b", Nothing),
        ("EXPLAIN ANALYZE CREATE TEMP TABLE a AS SELECT 1", Session),
        ("CREATE TABLE pg_temp.a (x int)", Session),
        (
            "CREATE FUNCTION \"pg_temp\".a() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            Session,
        ),
        ("CREATE TABLE a (temp int, local int)", Nothing),
        ("INSERT INTO temp SELECT temp FROM a", Nothing),
        ("DECLARE a CURSOR WITH HOLD FOR SELECT 1", Session),
        ("DECLARE a CURSOR FOR SELECT 1", Nothing),
        (
            "DECLARE a CURSOR FOR SELECT set_config('a.b', 'c', false)",
            Session,
        ),
        ("DECLARE a CURSOR FOR SELECT pg_advisory_lock(1)", Session),
        (
            "DECLARE a CURSOR FOR SELECT set_config('search_path', $1, false)",
            SessionPath,
        ),
        ("SELECT pg_advisory_lock(1)", Session),
        ("SELECT pg_catalog.pg_try_advisory_lock_shared($1)", Session),
        ("SELECT pg_advisory_unlock_all()", Session),
        ("SELECT \"pg_advisory_lock\" (1)", Session),
        ("SELECT E'\\'' , pg_advisory_lock(1), ''", Session),
        ("SELECT $a$it's$a$, pg_advisory_lock(1)", Session),
        ("SELECT E'a'\n'\\'', pg_advisory_lock(1), ''", Session),
        (
            "SELECT e'a' -- b'\r\n\t--\n'c'\n'\\'', pg_advisory_lock(1), ''",
            Session,
        ),
        ("SELECT E'a'\n'\\', pg_advisory_lock(1)'", Nothing),
        ("SELECT E'a' /*\n*/ '\\', pg_advisory_lock(1), ''", Session),
        ("SELECT 'a'\n'\\', pg_advisory_lock(1), ''", Session),
        (
            "SELECT 1 AS \u{20ac}$$, pg_advisory_lock(1) AS x$$",
            Session,
        ),
        ("SELECT 1 AS a\u{a0}$$, pg_advisory_lock(1) AS x$$", Session),
        (
            "SELECT 1 AS \u{2003}$$, pg_advisory_lock(1) AS x$$",
            Session,
        ),
        (
            "SELECT 1 AS \u{20ac}E'\\', pg_advisory_lock(1), ''",
            Session,
        ),
        (
            "SELECT $\u{20ac}$'$\u{20ac}$, pg_advisory_lock(1), ''",
            Session,
        ),
        (
            "SELECT set_config('search_'\n'path', $1, true)",
            SessionPath,
        ),
        (
            "SELECT set_config(E'search\\x5fpath', $1, true)",
            SessionPath,
        ),
        ("SET LOCAL search_path = pg_temp", SessionPath),
        ("SET LOCAL search_path TO public, \"pg_temp\"", SessionPath),
        ("SET LOCAL search_path TO PG_TEMP_3", SessionPath),
        ("SET LOCAL SCHEMA 'pg_temp'", SessionPath),
        ("SET LOCAL SCHEMA E'pg\\x5ftemp'", SessionPath),
        (
            "SELECT set_config('search_path', 'pg_temp', true)",
            SessionPath,
        ),
        (
            "SELECT set_config('search_path', 'pg_' || 'temp', true)",
            SessionPath,
        ),
        (
            "SELECT set_config('search_path', 'pg_'\n'temp', true)",
            SessionPath,
        ),
        (
            "SELECT set_config('search_path', a.path, true) FROM a",
            SessionPath,
        ),
        ("SELECT set_config('search_path', 'a, b', true)", Path),
        ("SELECT 'it''s', pg_advisory_lock(1) --'", Session),
        (
            "SELECT $1, 'pg_advisory_lock(1)', $$ pg_advisory_lock(1) $$",
            Nothing,
        ),
        ("SELECT pg_advisory_xact_lock(1)", Nothing),
        ("SELECT pg_try_advisory_xact_lock(1)", Nothing),
        ("SELECT set_config('app.tenant', $1, false)", Session),
        ("SELECT set_config('app.tenant', $1, $2)", Session),
        ("SELECT set_config('app.tenant', $1, true)", Nothing),
        (
            "SELECT set_config('app.tenant', coalesce($1, ')'), is_local => TRUE)",
            Nothing,
        ),
        (
            "SELECT set_config('app.tenant', (SELECT 'a'), 't')",
            Nothing,
        ),
        ("SELECT set_config('app.tenant', 'true', not true)", Session),
        ("SELECT set_config('search_path', $1, true)", Path),
        ("SELECT set_config($1, $2, true)", Path),
        (
            "SELECT \"set_config\"('search_path', $1, false)",
            SessionPath,
        ),
        (
            "UPDATE pg_settings SET setting = 'a' WHERE name = 'TimeZone'",
            Session,
        ),
        (
            "UPDATE pg_catalog.\"pg_settings\" SET setting = $1 WHERE name = 'search_path'",
            SessionPath,
        ),
        ("UPDATE ONLY pg_settings AS s SET setting = 'a'", Session),
        (
            "UPDATE \"a\" . pg_catalog.pg_settings SET setting = 'a'",
            Session,
        ),
        (
            "WITH b AS (UPDATE ONLY (a.pg_catalog.pg_settings) SET setting = 'a' RETURNING 1) TABLE b",
            Session,
        ),
        (
            "UPDATE a SET b = (SELECT setting FROM pg_settings LIMIT 1)",
            Nothing,
        ),
        ("SELECT * FROM pg_settings", Nothing),
        ("SELECT lastval()", Session),
        ("SELECT currval('a')", Session),
        ("INSERT INTO a VALUES (1) RETURNING currval('b')", Session),
        ("INSERT INTO a VALUES (currval('b'))", Session),
        ("INSERT INTO a SELECT lastval()", Session),
        ("UPDATE a SET b = \"lastval\"()", Session),
        ("WITH a AS (SELECT lastval()) SELECT * FROM a", Session),
        ("SELECT lastval(), 'nextval'", Session),
        ("SELECT lastval, currval FROM a", Nothing),
        ("INSERT INTO a VALUES (nextval('a'), currval('a'))", Nothing),
        ("SELECT nextval('a'), currval('a')", Nothing),
        ("SELECT lastval(), nextval('a')", Session),
        ("SELECT nextval('a'), lastval()", Nothing),
        ("SELECT setseed(0.5)", Lasting),
        (
            "SELECT setseed(0.5), query_to_xml('SELECT 1', true, true, '')",
            Lasting,
        ),
        ("SET seed = 0.5", Lasting),
        ("SET LOCAL seed TO 0.5", Lasting),
        ("SET SESSION \"seed\" TO DEFAULT", Lasting),
        ("SELECT set_config('Seed', '0.5', true)", Lasting),
        ("SELECT set_config('app.seed', '0.5', true)", Nothing),
        ("SET LOCAL app.seed = 1", Nothing),
        ("PREPARE a AS SELECT dblink_connect('b')", Lasting),
        ("EXECUTE a", SessionPath),
        ("DO $$BEGIN PERFORM setseed(0.5); END$$", Lasting),
        ("DO $$BEGIN LOAD 'auto_explain'; END$$", Lasting),
        (
            "DO 'BEGIN EXECUTE ''load /**/''; EXECUTE E''LOAD\t $$a$$''; END'",
            Lasting,
        ),
        ("DO 'BEGIN EXECUTE ''LOAD''''a''''''; END'", Lasting),
        (
            "DO $$BEGIN PERFORM payload FROM loads WHERE a = 'load'; END$$",
            Code,
        ),
        ("COPY a FROM STDIN", Stream),
        (
            "/* a */ copy \"from\" (a, b) from/**/stdout (FORMAT csv)",
            Stream,
        ),
        (
            "COPY a FROM STDIN WHERE set_config('a.b', 'c', false) = ''",
            Session,
        ),
        ("COPY (SELECT a FROM stdin) TO STDOUT", Nothing),
        ("COPY a FROM '/stdin'", Nothing),
        ("COPY stdin TO STDOUT", Nothing),
        ("SELECT a FROM stdin", Nothing),
        ("DO $$BEGIN EXECUTE 'DEALLOCATE ALL'; END$$", Names),
        (
            "DO 'BEGIN DEALLOCATE a; EXECUTE $a$deallocate /**/ prepare\n\tall$a$; END'",
            Names,
        ),
        (
            "DO $$BEGIN EXECUTE 'DEALLOCATE one'; EXECUTE 'ALL'; PERFORM not_deallocate(all_a); END$$",
            Code,
        ),
        (
            "SELECT * FROM ts_stat('SELECT isn_weak(true)::text::tsvector')",
            Lasting,
        ),
        ("SELECT isn_weak(true)", Lasting),
        ("SELECT set_config\u{b}('a.b', 'c', false)", Session),
        ("SELECT public.set_limit(0.9)", Session),
        ("SELECT dblink_connect_u('a', $1)", Lasting),
        ("SELECT dblink($1, 'SELECT 1')", Nothing),
        (
            "SELECT pg_create_logical_replication_slot('a', 'b', true)",
            Lasting,
        ),
        ("SELECT pg_replication_origin_session_setup('a')", Lasting),
        (
            "SELECT * FROM ts_stat('SELECT set_config(''a'', ''b'', false)::tsvector')",
            Code,
        ),
        ("SELECT \"ts_rewrite\"(a, $1) FROM b", Code),
        ("SELECT * FROM crosstab_hash($1, $2)", Code),
        ("SELECT ts_stat, crosstab FROM a", Nothing),
        (
            "SELECT U&\"set!005fconfig\" UESCAPE '!'('a', 'b', false)",
            Code,
        ),
        ("CREATE TABLE u&\"pg\\005ftemp\".a (x int)", Code),
        ("CREATE TABLE pg_temp_3.a (x int)", Session),
        ("CREATE TABLE not_pg_temp.a (x int)", Nothing),
        (
            "IMPORT FOREIGN SCHEMA a FROM SERVER b INTO pg_temp",
            Session,
        ),
        (
            "SELECT set_config(is_local => false, setting_name => 'a.b', new_value => 'true')",
            SessionPath,
        ),
        (
            "SELECT set_config(setting_name => 'a.b', new_value => $1, is_local => true)",
            SessionPath,
        ),
        (
            "COPY (UPDATE pg_settings SET setting = 'a' RETURNING 1) TO STDOUT",
            Session,
        ),
        ("SELECT U&\"set\\005fconfig\"('a', 'b', false)", Session),
        (
            "SELECT query_to_xml('SELECT set_config(''a'', ''b'', false)', true, true, '')",
            Code,
        ),
        (
            "CREATE VIEW a AS SELECT set_config('a', 'b', false), pg_advisory_lock(1)",
            Nothing,
        ),
        (
            "CREATE OR REPLACE FUNCTION a() RETURNS int BEGIN ATOMIC SELECT pg_advisory_lock(1); END",
            Nothing,
        ),
        (
            "CREATE TABLE a AS SELECT set_config('a', 'b', false)",
            Session,
        ),
        (
            "CREATE MATERIALIZED VIEW a AS SELECT pg_advisory_lock(1)",
            Session,
        ),
        (
            "SELECT set_config('a', $1, true), Set_Config('b', $2, false)",
            Session,
        ),
        (
            "SELECT 'SET search_path', \"pg_advisory_lock\" FROM settings",
            Nothing,
        ),
        ("UPDATE a SET b = 1", Nothing),
        ("", Nothing),
        ("/* never ended", Nothing),
        ("SELECT 'never ended", Nothing),
    ];

    #[test]
    fn a_text_may_have_several_statements() {
        for (text, changes) in [
            ("SELECT ';'; SET a = 1 -- ; BEGIN", &[Nothing, Session][..]),
            ("BEGIN; DISCARD ALL;", &[Transaction, Names, Nothing]),
            ("DO $$BEGIN; SET a = 1; END$$; LOAD 'a'", &[Code, Lasting]),
            ("", &[Nothing]),
        ] {
            assert!(changes_of(text).eq(changes.iter().copied()), "{text}");
        }
    }

    #[test]
    fn the_first_word_decides() {
        for (sql, change) in CHANGES {
            assert_eq!(change_of(sql), *change, "{sql}");
        }
    }
}
