use super::*;

fn after(steps: &[(&str, Option<&[u8]>)], mut path: Path) -> Path {
    for &(sql, parameters) in steps {
        match change_of(sql) {
            change @ (Change::Path | Change::SessionPath) => path.set(change, 1, parameters, true),
            _ => path.follow(sql),
        }
    }
    path
}

#[test]
fn the_same_statement_with_the_same_parameters_gives_the_same_path() {
    let (mut one, mut other) = (Path::default(), Path::default());
    one.set(Change::SessionPath, 7, Some(b"a"), false);
    other.set(Change::SessionPath, 7, Some(b"a"), false);
    assert_eq!(one.number(), other.number());
    assert_ne!(one.number(), 0, "it is not that of a new session");
    other.set(Change::SessionPath, 7, Some(b"b"), false);
    assert_ne!(one.number(), other.number());
    other.set(Change::SessionPath, 8, Some(b"a"), false);
    assert_ne!(one.number(), other.number());
}

#[test]
fn parameters_that_cannot_be_told_apart_give_a_new_path_each_time() {
    let (mut one, mut other) = (Path::default(), Path::default());
    one.set(Change::SessionPath, 7, None, false);
    other.set(Change::SessionPath, 7, None, false);
    assert_ne!(one.number(), other.number());
}

#[test]
fn a_rollback_takes_back_what_a_transaction_has_set_and_a_commit_does_not() {
    let set = ("SET search_path = a", Some(&b""[..]));
    let start = ("BEGIN", None);
    let kept = after(&[start, set, ("COMMIT", None)], Path::default());
    let undone = after(&[start, set, ("ROLLBACK", None)], Path::default());
    assert_ne!(kept.number(), 0);
    assert_eq!(undone.number(), 0);
    // What was committed holds from then on.
    assert_eq!(
        after(&[start, ("ROLLBACK", None)], kept).number(),
        kept.number()
    );
}

#[test]
fn a_local_path_ends_with_its_transaction() {
    let local = ("SET LOCAL search_path = a", Some(&b""[..]));
    let within = after(&[("BEGIN", None), local], Path::default());
    assert_ne!(within.number(), 0);
    assert_eq!(after(&[("COMMIT", None)], within).number(), 0);
}

#[test]
fn a_rollback_to_a_savepoint_leaves_a_path_that_nothing_else_has() {
    let set = ("SET search_path = a", Some(&b""[..]));
    let within = after(
        &[("BEGIN", None), ("SAVEPOINT s", None), set],
        Path::default(),
    );
    let back = after(&[("ROLLBACK TO SAVEPOINT s", None)], within);
    assert_ne!(back.number(), within.number());
    assert_ne!(back.number(), 0);
}
