//! What a statement changes of the session that executes it, beyond the database.
//!
//! In: the text of one statement. Out: a [`Change`]. The first word decides, and for functions that may stand anywhere their
//! names; one pass over one input. What a function or a procedure of the application does is not seen.

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
    /// The names of prepared statements, which the pool has given.
    Names,
}

impl Change {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Transaction,
        Self::Savepoint,
        Self::Session,
        Self::Names,
    ];
}

/// What a statement changes.
pub fn change_of(sql: &str) -> Change {
    let rest = from_first_word(sql);
    let mut words = Words(rest);
    let [first, second, third, fourth] = core::array::from_fn(|_| words.next().unwrap_or(""));
    if is(first, &["BEGIN", "START", "COMMIT", "END", "ABORT"])
        || is(first, &["PREPARE"]) && is(second, &["TRANSACTION"])
    {
        return Change::Transaction;
    }
    if is(first, &["ROLLBACK"]) {
        let to = if is(second, &["WORK", "TRANSACTION"]) {
            third
        } else {
            second
        };
        return if is(to, &["TO"]) {
            Change::Savepoint
        } else {
            Change::Transaction
        };
    }
    if is(first, &["SAVEPOINT", "RELEASE"]) {
        return Change::Savepoint;
    }
    if is(first, &["DISCARD"]) && is(second, &["ALL", "PLANS"]) {
        return Change::Names;
    }
    if is(first, &["DEALLOCATE"]) {
        let all = if is(second, &["PREPARE"]) {
            third
        } else {
            second
        };
        return if is(all, &["ALL"]) {
            Change::Names
        } else {
            Change::Session
        };
    }
    if changes_session(rest, [first, second, third, fourth]) {
        Change::Session
    } else {
        Change::Nothing
    }
}

/// Whether settings, locks, temporary tables or channels stay with the session behind it.
fn changes_session(sql: &str, [first, second, third, fourth]: [&str; 4]) -> bool {
    if is(first, &["SET"]) {
        return !is(second, &["LOCAL", "TRANSACTION", "CONSTRAINTS"]);
    }
    if is(first, &["CREATE"]) {
        let temporary = if is(second, &["LOCAL", "GLOBAL", "OR"]) {
            third
        } else {
            second
        };
        return is(temporary, &TEMPORARY) || is(fourth, &TEMPORARY);
    }
    if is(first, &["DECLARE"]) {
        return has_words(sql, &["WITH", "HOLD"]);
    }
    is(
        first,
        &["RESET", "LISTEN", "UNLISTEN", "DISCARD", "PREPARE", "LOAD"],
    ) || calls_lock(sql)
        || calls_set_config(sql)
        || TEMPORARY.iter().any(|kind| has_words(sql, &["INTO", kind]))
}

const TEMPORARY: [&str; 2] = ["TEMP", "TEMPORARY"];

/// Whether a word is one of these keywords.
fn is(word: &str, keywords: &[&str]) -> bool {
    keywords.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// Whether it takes or gives back a lock that outlives its transaction.
fn calls_lock(sql: &str) -> bool {
    Words(sql).any(|word| {
        let has = |part: &str| find(word, part);
        has("pg_") && has("advisory_") && !has("advisory_xact_") && (has("lock"))
    })
}

/// Whether it calls `set_config` for longer than its transaction; what is no literal may be that.
fn calls_set_config(sql: &str) -> bool {
    let mut rest = sql;
    while let Some(at) = position(rest, "set_config") {
        rest = &rest[at + "set_config".len()..];
        let end = rest.find(')').unwrap_or(rest.len());
        let last = rest[..end].rsplit(',').next().unwrap_or("").trim();
        if !(last.eq_ignore_ascii_case("true") || last.eq_ignore_ascii_case("'t'")) {
            return true;
        }
    }
    false
}

/// Whether these words stand side by side.
fn has_words(sql: &str, wanted: &[&str; 2]) -> bool {
    let mut before = "";
    Words(sql).any(|word| {
        let found = before.eq_ignore_ascii_case(wanted[0]) && word.eq_ignore_ascii_case(wanted[1]);
        before = word;
        found
    })
}

fn find(text: &str, part: &str) -> bool {
    position(text, part).is_some()
}

fn position(text: &str, part: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(part.len());
    windows.position(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// The words of a statement: names and keywords, without comments and what is between quotes.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let rest = self.0;
            let first = rest.chars().next()?;
            let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
            if rest.starts_with("--") || rest.starts_with("/*") {
                self.0 = after_comment(rest);
            } else if first == '\'' || first == '"' {
                let inner = &rest[1..];
                self.0 = inner.find(first).map_or("", |end| &inner[end + 1..]);
            } else if is_word(first) {
                let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                self.0 = &rest[end..];
                return Some(&rest[..end]);
            } else {
                self.0 = &rest[first.len_utf8()..];
            }
        }
    }
}

/// The word that a statement begins with; empty where there is none.
pub fn first_word(sql: &str) -> &str {
    Words(from_first_word(sql)).next().unwrap_or("")
}

/// The statement from the word that it begins with: without spaces, comments and empty statements before it.
fn from_first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ';');
        if !(rest.starts_with("--") || rest.starts_with("/*")) {
            return rest;
        }
        rest = after_comment(rest);
    }
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
    use super::Change::{Names, Nothing, Savepoint, Session, Transaction};
    use super::change_of;

    #[test]
    fn the_first_word_decides() {
        for (sql, change) in [
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
            ("SET search_path = a", Session),
            ("set session role a", Session),
            ("SET ROLE a", Session),
            ("SET/**/TIME ZONE 'UTC'", Session),
            ("SET LOCAL search_path = a", Nothing),
            ("SET TRANSACTION READ ONLY", Nothing),
            ("RESET ALL", Session),
            ("LISTEN a", Session),
            ("LOAD 'a'", Session),
            ("PREPARE a AS SELECT 1", Session),
            ("DEALLOCATE a", Session),
            ("DEALLOCATE ALL", Names),
            ("deallocate prepare all", Names),
            ("DISCARD ALL", Names),
            ("DISCARD TEMP", Session),
            ("CREATE TEMP TABLE a (x int)", Session),
            ("CREATE LOCAL TEMPORARY TABLE a (x int)", Session),
            ("CREATE OR REPLACE TEMP VIEW a AS SELECT 1", Session),
            ("CREATE TABLE temp_a (x int)", Nothing),
            ("SELECT 1 INTO TEMP a", Session),
            ("DECLARE a CURSOR WITH HOLD FOR SELECT 1", Session),
            ("DECLARE a CURSOR FOR SELECT 1", Nothing),
            ("SELECT pg_advisory_lock(1)", Session),
            ("SELECT pg_catalog.pg_try_advisory_lock_shared($1)", Session),
            ("SELECT pg_advisory_unlock_all()", Session),
            ("SELECT pg_advisory_xact_lock(1)", Nothing),
            ("SELECT pg_try_advisory_xact_lock(1)", Nothing),
            ("SELECT set_config('app.tenant', $1, false)", Session),
            ("SELECT set_config('app.tenant', $1, $2)", Session),
            ("SELECT set_config('app.tenant', $1, true)", Nothing),
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
        ] {
            assert_eq!(change_of(sql), change, "{sql}");
        }
    }
}
