//! Channels that Python has given names to, for native code to find (`citius.go.share`).

use std::sync::Mutex;

use crate::Channel;
use crate::lock::lock;

static NAMES: Mutex<Vec<(String, Channel)>> = Mutex::new(Vec::new());

/// Gives `channel` a name, or takes the name from whatever has it.
pub fn set(name: &str, channel: Option<Channel>) {
    let before = {
        let mut names = lock(&NAMES);
        let at = names.iter().position(|(other, _)| other == name);
        let before = at.map(|at| names.swap_remove(at));
        if let Some(channel) = channel {
            names.push((name.to_owned(), channel));
        }
        before
    };
    drop(before);
}

/// The channel that has a name.
pub fn channel(name: &[u8]) -> Option<Channel> {
    let names = lock(&NAMES);
    let found = names.iter().find(|(other, _)| other.as_bytes() == name);
    found
        .map(|(_, channel)| channel.clone())
        .filter(Channel::is_of_this_process)
}
