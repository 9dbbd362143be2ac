//! Commands as bytes, and what has to be known of them: how they may share a connection, which of their arguments is a key.

use crate::slot_of;
use alloc::vec::Vec;

/// Appends a command.
pub fn append_command(output: &mut Vec<u8>, words: &[&[u8]]) {
    append_head(output, words.len());
    for word in words {
        append_word(output, word);
    }
}

/// Appends the beginning of a command of so many words.
#[inline]
pub fn append_head(output: &mut Vec<u8>, words: usize) {
    append_length(output, b'*', words);
}

/// Appends a word of a command.
#[inline]
pub fn append_word(output: &mut Vec<u8>, word: &[u8]) {
    output.reserve(word.len() + 16);
    append_length(output, b'$', word.len());
    output.extend_from_slice(word);
    output.extend_from_slice(b"\r\n");
}

#[inline]
fn append_length(output: &mut Vec<u8>, kind: u8, len: usize) {
    output.push(kind);
    output.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
    output.extend_from_slice(b"\r\n");
}

/// What has to be known of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// How it may share a connection with others.
    pub manner: Manner,
    /// Where its first key is.
    pub key: KeyPosition,
    /// Whether a client may keep its reply until a key changes.
    pub cached_by: CachedBy,
}

/// The keys that the reply of a command depends on, if it changes nothing and depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedBy {
    /// It may not be kept.
    Nothing,
    /// The first argument.
    FirstKey,
    /// All arguments.
    AllKeys,
}

/// How a command may share a connection with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Its reply comes at once.
    Shared,
    /// The server may keep it waiting, and with it all that come behind it.
    Blocking,
    /// The server may keep it waiting if it has this word.
    BlockingWith(&'static [u8]),
    /// It changes the state of the connection; the text says what to use in its place. A connection of the caller's own takes it.
    Refused(&'static str),
    /// No connection takes it: what follows would not be the replies to what follows.
    Never(&'static str),
}

/// How the replies of all masters of a cluster make one, of a command that is about all keys, or about all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Numbers are added.
    Sum,
    /// Lists follow one another.
    List,
    /// Lists follow one another, without what is there already.
    Distinct,
    /// Of lists of numbers each place has the least.
    Least,
    /// Of lists of names and numbers, each number is added to that of its place.
    Counts,
    /// Any that is not null.
    Any,
    /// All are the same; the first.
    Same,
    /// There is none: the reply is of one node, and so is what is asked for next.
    Refused(&'static str),
}

/// Where the first key of a command is, counted from 0, which is the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPosition {
    /// It has none.
    None,
    /// Here.
    At(usize),
    /// Behind the number of keys, which is here; a 0 there says that it has none.
    Counted(usize),
    /// Behind this word.
    Behind(&'static [u8]),
}

/// Bytes of the longest name in the table.
const NAME_BYTES_MAX: usize = 24;

/// What is known of a command; of an unknown one that its first argument is a key.
#[inline]
pub fn traits_of(name: &[u8]) -> Traits {
    let mut upper = [0; NAME_BYTES_MAX];
    match upper.get_mut(..name.len()) {
        None => Traits::of(Manner::Shared, KeyPosition::At(1)),
        Some(upper) => {
            upper.copy_from_slice(name);
            upper.make_ascii_uppercase();
            find(upper)
        }
    }
}

impl Traits {
    const fn of(manner: Manner, key: KeyPosition) -> Self {
        Self {
            manner,
            key,
            cached_by: CachedBy::Nothing,
        }
    }
}

fn find(name: &[u8]) -> Traits {
    use KeyPosition::{At, Behind, Counted};
    use Manner::{Blocking, BlockingWith, Shared};
    match name {
        b"GET" | b"GETRANGE" | b"SUBSTR" | b"STRLEN" | b"GETBIT" | b"BITCOUNT" | b"BITPOS"
        | b"BITFIELD_RO" | b"HGET" | b"HMGET" | b"HGETALL" | b"HKEYS" | b"HVALS" | b"HLEN"
        | b"HEXISTS" | b"HSTRLEN" | b"LRANGE" | b"LLEN" | b"LINDEX" | b"LPOS" | b"SMEMBERS"
        | b"SISMEMBER" | b"SMISMEMBER" | b"SCARD" | b"ZRANGE" | b"ZREVRANGE" | b"ZRANGEBYSCORE"
        | b"ZREVRANGEBYSCORE" | b"ZRANGEBYLEX" | b"ZREVRANGEBYLEX" | b"ZSCORE" | b"ZMSCORE"
        | b"ZRANK" | b"ZREVRANK" | b"ZCARD" | b"ZCOUNT" | b"ZLEXCOUNT" | b"TYPE" | b"XLEN"
        | b"XRANGE" | b"XREVRANGE" | b"GEOPOS" | b"GEODIST" | b"GEOHASH" | b"GEOSEARCH"
        | b"JSON.GET" => Traits {
            manner: Shared,
            key: At(1),
            cached_by: CachedBy::FirstKey,
        },
        b"MGET" | b"EXISTS" | b"SINTER" | b"SUNION" | b"SDIFF" => Traits {
            manner: Shared,
            key: At(1),
            cached_by: CachedBy::AllKeys,
        },

        b"BLPOP" | b"BRPOP" | b"BRPOPLPUSH" | b"BLMOVE" | b"BZPOPMIN" | b"BZPOPMAX" => {
            Traits::of(Blocking, At(1))
        }
        b"BLMPOP" | b"BZMPOP" => Traits::of(Blocking, Counted(2)),
        b"XREAD" | b"XREADGROUP" => Traits::of(BlockingWith(b"BLOCK"), Behind(b"STREAMS")),

        b"EVAL" | b"EVALSHA" | b"EVAL_RO" | b"EVALSHA_RO" | b"FCALL" | b"FCALL_RO" => {
            Traits::of(Shared, Counted(2))
        }
        b"ZUNION" | b"ZINTER" | b"ZDIFF" | b"ZINTERCARD" | b"SINTERCARD" | b"LMPOP" | b"ZMPOP" => {
            Traits::of(Shared, Counted(1))
        }
        b"OBJECT" | b"XINFO" | b"XGROUP" | b"MEMORY" | b"BITOP" | b"DEBUG" => {
            Traits::of(Shared, At(2))
        }
        b"MIGRATE" => Traits::of(Shared, At(3)),
        b"CLIENT" | b"CONFIG" | b"CLUSTER" | b"COMMAND" | b"SCRIPT" | b"FUNCTION" | b"ACL"
        | b"LATENCY" | b"SLOWLOG" | b"MODULE" | b"PUBSUB" | b"PING" | b"ECHO" | b"INFO"
        | b"DBSIZE" | b"FLUSHALL" | b"FLUSHDB" | b"KEYS" | b"SCAN" | b"RANDOMKEY" | b"TIME"
        | b"PUBLISH" | b"SAVE" | b"BGSAVE" | b"BGREWRITEAOF" | b"LASTSAVE" | b"ROLE"
        | b"REPLICAOF" | b"SLAVEOF" | b"FAILOVER" | b"SHUTDOWN" | b"SWAPDB" | b"LOLWUT"
        | b"SENTINEL" => Traits::of(Shared, KeyPosition::None),
        _ => find_refused(name).unwrap_or(Traits::of(Shared, At(1))),
    }
}

/// How a command of this name and first argument may share a connection.
#[inline]
pub fn manner_of(name: &[u8], argument: impl FnOnce() -> Option<Vec<u8>>) -> Manner {
    let is_any = |names: [&[u8]; 2]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    if is_any([b"CLIENT", b"SCRIPT"])
        && let Some(argument) = argument()
        && let Some(manner) = manner_of_container(name, &argument.to_ascii_uppercase())
    {
        return manner;
    }
    traits_of(name).manner
}

/// How one of a container's commands may share a connection.
fn manner_of_container(name: &[u8], argument: &[u8]) -> Option<Manner> {
    if name.eq_ignore_ascii_case(b"SCRIPT") {
        let is_debug = argument == b"DEBUG";
        return is_debug.then_some(Manner::Refused("use redis-cli --ldb"));
    }
    match argument {
        b"REPLY" => Some(Manner::Never(
            "each command has a reply, which is that of no other; use call.start() to wait for none",
        )),
        b"TRACKING" | b"CACHING" => Some(Manner::Refused(
            "use Redis(cache=ClientCache(…)), or redis.connection()",
        )),
        b"SETNAME" => Some(Manner::Refused("use Redis(client_name=…)")),
        b"NO-EVICT" | b"NO-TOUCH" | b"SETINFO" | b"CAPA" | b"IMPORT-SOURCE" => {
            Some(Manner::Refused("use redis.connection()"))
        }
        _ => None,
    }
}

/// How a command that has no key goes to all masters of a cluster; `None`: it goes to one node.
pub fn spread_of(name: &[u8], argument: Option<&[u8]>) -> Option<Spread> {
    let argument = argument.unwrap_or_default().to_ascii_uppercase();
    match (name.to_ascii_uppercase().as_slice(), argument.as_slice()) {
        (b"DBSIZE", _) | (b"PUBSUB", b"NUMPAT") => Some(Spread::Sum),
        (b"KEYS", _) => Some(Spread::List),
        (b"PUBSUB", b"CHANNELS" | b"SHARDCHANNELS") => Some(Spread::Distinct),
        (b"PUBSUB", b"NUMSUB" | b"SHARDNUMSUB") => Some(Spread::Counts),
        (b"SCRIPT", b"EXISTS") => Some(Spread::Least),
        (b"RANDOMKEY", _) => Some(Spread::Any),
        (b"FLUSHALL" | b"FLUSHDB", _)
        | (b"SCRIPT", b"LOAD" | b"FLUSH")
        | (b"FUNCTION", b"LOAD" | b"DELETE" | b"FLUSH" | b"RESTORE")
        | (b"CONFIG", b"SET" | b"RESETSTAT")
        | (b"ACL", b"SETUSER" | b"DELUSER" | b"LOAD" | b"SAVE") => Some(Spread::Same),
        (b"SCAN", _) => Some(Spread::Refused(
            "a cursor of SCAN belongs to one node of the cluster: use redis.scan(…)",
        )),
        _ => None,
    }
}

/// What another method of a client is for.
fn find_refused(name: &[u8]) -> Option<Traits> {
    let never = match name {
        b"SUBSCRIBE" | b"UNSUBSCRIBE" | b"PSUBSCRIBE" | b"PUNSUBSCRIBE" | b"SSUBSCRIBE"
        | b"SUNSUBSCRIBE" => Some("use redis.subscribe(…), which has a connection for it"),
        b"HELLO" => Some("say it in the URL or the arguments of Redis(…)"),
        b"RESET" => Some("the connection of a block is closed at its end"),
        // A server takes a request of HTTP for an attack, and closes the connection with all that is under way.
        b"POST" | b"HOST:" => Some("the server closes the connection for it"),
        b"MONITOR" | b"SYNC" | b"PSYNC" | b"REPLCONF" => {
            Some("what it returns never ends; use redis-cli")
        }
        _ => None,
    };
    if let Some(instead) = never {
        return Some(Traits::of(Manner::Never(instead), KeyPosition::None));
    }
    let (instead, key) = match name {
        b"MULTI" | b"EXEC" | b"DISCARD" | b"UNWATCH" => (
            "use redis.transaction() or redis.watch(…)",
            KeyPosition::None,
        ),
        b"WATCH" => (
            "use redis.transaction() or redis.watch(…)",
            KeyPosition::At(1),
        ),
        b"AUTH" | b"SELECT" => (
            "say it in the URL or the arguments of Redis(…)",
            KeyPosition::None,
        ),
        b"QUIT" => ("use redis.close()", KeyPosition::None),
        b"ASKING" | b"READONLY" | b"READWRITE" => (
            "the client follows redirections by itself",
            KeyPosition::None,
        ),
        b"WAIT" | b"WAITAOF" => (
            "use it on a connection of redis.connection(): it is about that connection's own writes",
            KeyPosition::None,
        ),
        _ => return None,
    };
    Some(Traits::of(Manner::Refused(instead), key))
}

/// The words of a command as [`append_command`] writes it, and of those behind it one after the other.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    left: usize,
    bytes: &'a [u8],
}

impl<'a> Words<'a> {
    /// Those of the first command of `encoded`.
    pub fn of(encoded: &'a [u8]) -> Self {
        let mut words = Self {
            left: 0,
            bytes: encoded,
        };
        words.begin();
        words
    }

    /// Goes on to the next command when all words of this one have been taken; `false` if there is none.
    pub fn begin(&mut self) -> bool {
        self.left = self.take_length(b'*').unwrap_or(0);
        self.left > 0
    }

    fn take_length(&mut self, kind: u8) -> Option<usize> {
        let rest = self.bytes.strip_prefix(&[kind])?;
        let end = rest.iter().position(|&byte| byte == b'\r')?;
        let digits = core::str::from_utf8(rest.get(..end)?).ok()?;
        self.bytes = rest.get(end + 2..)?;
        digits.parse().ok()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let len = self.take_length(b'$')?;
        let word = self.bytes.get(..len)?;
        self.bytes = self.bytes.get(len + 2..)?;
        Some(word)
    }
}

/// The first key of the first command of `encoded` that has one.
pub fn key_of(encoded: &[u8]) -> Option<&[u8]> {
    let mut words = Words::of(encoded);
    loop {
        let name = words.next()?;
        let rest = words.clone();
        if let Some(key) = find_key(traits_of(name).key, rest) {
            return Some(key);
        }
        words.by_ref().for_each(drop);
        if !words.begin() {
            return None;
        }
    }
}

/// The slots of the first keys of the commands of `encoded`.
pub fn slots_of(encoded: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let mut words = Words::of(encoded);
    core::iter::from_fn(move || {
        loop {
            let name = words.next()?;
            let key = find_key(traits_of(name).key, words.clone());
            words.by_ref().for_each(drop);
            words.begin();
            if let Some(key) = key {
                return Some(slot_of(key));
            }
        }
    })
}

/// How many values follow an option of XREAD and XREADGROUP.
fn values_of(option: &[u8]) -> usize {
    let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
    match () {
        () if is(b"GROUP") => 2,
        () if is(b"COUNT") || is(b"BLOCK") || is(b"CLAIM") => 1,
        () => 0,
    }
}

/// The first key of a command, of which the words behind the name are given.
fn find_key(position: KeyPosition, mut words: Words<'_>) -> Option<&[u8]> {
    match position {
        KeyPosition::None => None,
        KeyPosition::At(index) => words.nth(index - 1),
        KeyPosition::Counted(index) => match words.nth(index - 1)? {
            b"0" => None,
            _ => words.next(),
        },
        KeyPosition::Behind(mark) => {
            while let Some(word) = words.next() {
                if word.eq_ignore_ascii_case(mark) {
                    return words.next();
                }
                // A group may have the name of an option.
                for _ in 0..values_of(word) {
                    words.next()?;
                }
            }
            None
        }
    }
}
