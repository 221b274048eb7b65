//! Looks a remote through (`fsck`), puts back objects that are damaged or lost (`repair`), and removes what nobody keeps
//! (`gc`). Only these list it.

use std::collections::{BTreeSet, HashSet};
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use store::{Digest, Inspected, Store};

use super::Remote;
use super::bucket::{Body, Listed, read_small};
use super::entry::Statement;
use super::keys::PublicKey;
use super::push::{Tagged, in_parallel};

/// What is in a remote, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Examined {
    /// Whole objects.
    pub objects: usize,
    /// Entries with a good signature, of whomever.
    pub entries: usize,
    /// What is wrong, a line each, sorted.
    pub wrong: Vec<String>,
    /// The objects that are damaged, or named by an entry and not there.
    pub lost: BTreeSet<Digest>,
}

/// Reads everything and hashes it.
pub fn fsck(remote: &Remote) -> Result<Examined, String> {
    let examined = Mutex::new(Examined::default());
    let examined_now = || examined.lock().expect("nobody panics with it");
    let objects = remote.bucket.list("cas/")?;
    in_parallel(&objects, |it| {
        let outcome = object(remote, it);
        let mut examined = examined_now();
        match outcome {
            Ok(()) => examined.objects += 1,
            Err(why) => {
                examined.lost.extend(object_digest(&it.name));
                examined.wrong.push(format!("{} {why}", it.name));
            }
        }
        Ok(())
    })?;
    let there: HashSet<String> = objects.into_iter().map(|it| it.name).collect();
    in_parallel(&remote.bucket.list("ac/")?, |it| {
        let outcome = entry(remote, &it.name);
        let mut examined = examined_now();
        let why = match outcome {
            Ok(statement) => {
                let digests = statement.outputs.iter().map(|it| it.digest);
                let absent = |it: &Digest| !there.contains(&super::object_name(it));
                let lost: Vec<Digest> = digests.filter(absent).collect();
                examined.lost.extend(&lost);
                let first = lost.first();
                first.map(|lost| format!("names the object {lost}, which is not there"))
            }
            Err(why) => Some(why),
        };
        match why {
            None => examined.entries += 1,
            Some(why) => examined.wrong.push(format!("{} {why}", it.name)),
        }
        Ok(())
    })?;
    let mut examined = examined.into_inner().expect("nobody panics with it");
    examined.wrong.sort();
    Ok(examined)
}

/// Puts back the objects among these that the store has. Those that it does not have stay as they are: whoever takes
/// one finds out, and makes it again.
pub fn repair(remote: &Remote, store: &Store, lost: &BTreeSet<Digest>) -> Result<usize, String> {
    let whole = |digest: &&Digest| matches!(store.inspect(digest), Inspected::Whole(_));
    let here: Vec<&Digest> = lost.iter().filter(whole).collect();
    in_parallel(&here, |digest| {
        let path = store.object_path(digest);
        let name = super::object_name(digest);
        remote.bucket.put(&name, Body::File(&path))
    })?;
    Ok(here.len())
}

fn object_digest(name: &str) -> Option<Digest> {
    name.strip_prefix("cas/")?.parse().ok()
}

fn object(remote: &Remote, listed: &Listed) -> Result<(), String> {
    let digest = object_digest(&listed.name).ok_or("is not the name of an object")?;
    let mut bytes = remote.bucket.get(&listed.name)?.ok_or("is gone")?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match bytes.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => drop(hasher.update(&piece[..n])),
            Err(error) => return Err(format!("cannot be read: {error}")),
        }
    }
    match hasher.finalize().to_hex().as_str() == digest.to_string() {
        true => Ok(()),
        false => Err("has other bytes than its name says".to_owned()),
    }
}

/// The statement in an entry, by the key and the signer in its name.
fn entry(remote: &Remote, name: &str) -> Result<Statement, String> {
    let parts: Vec<&str> = name.split('/').collect();
    let [_, key, file] = parts[..] else {
        return Err("is not the name of an entry".to_owned());
    };
    let signer = file
        .strip_suffix(".json")
        .map(|hex| format!("ed25519:{hex}"));
    let signer = signer.and_then(|text| PublicKey::read(&text));
    let (Ok(key), Some(signer)) = (key.parse(), signer) else {
        return Err("is not the name of an entry".to_owned());
    };
    let bytes = read_small(remote.bucket.as_ref(), name)?.ok_or("is gone")?;
    Statement::read(&bytes, &key, &signer)
}

/// What gc would remove, or has removed.
#[derive(Debug, Default, PartialEq)]
pub struct Removed {
    /// Entries.
    pub entries: usize,
    /// Objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes entries that are in nobody's list, then objects that no entry names, both only if they are old enough:
/// what somebody is pushing just now is not. A list or entry that cannot be read ends it before anything is removed.
pub fn gc(remote: &Remote, grace: Duration, dry_run: bool) -> Result<Removed, String> {
    let bucket = remote.bucket.as_ref();
    let (entries, objects) = (bucket.list("ac/")?, bucket.list("cas/")?);
    let mut kept: HashSet<Digest> = HashSet::new();
    for tag in bucket.list("tags/")? {
        let unread = || format!("`{}` cannot be read: nothing was removed", tag.name);
        let bytes = read_small(bucket, &tag.name)?.ok_or_else(unread)?;
        let list: Tagged = serde_json::from_slice(&bytes).map_err(|_| unread())?;
        kept.extend(list.keys);
    }
    let is_old = |it: &Listed| {
        let age = SystemTime::now().duration_since(it.modified);
        age.unwrap_or_default() >= grace
    };
    let stays = |listed: &Listed| {
        let key = listed.name.split('/').nth(1);
        let key = key.and_then(|key| key.parse().ok());
        key.is_some_and(|key| kept.contains(&key)) || !is_old(listed)
    };
    let (staying, rest): (Vec<&Listed>, Vec<&Listed>) = entries.iter().partition(|it| stays(it));
    let needed = Mutex::new(HashSet::new());
    in_parallel(&staying, |listed| {
        let statement = entry(remote, &listed.name)
            .map_err(|why| format!("{} {why}: nothing was removed", listed.name))?;
        let outputs = statement.outputs.iter();
        let names = outputs.map(|it| super::object_name(&it.digest));
        needed.lock().expect("nobody panics with it").extend(names);
        Ok(())
    })?;
    let needed = needed.into_inner().expect("nobody panics with it");
    let mut removed = Removed::default();
    // Entries first: one whose object is gone would be an empty promise.
    for listed in rest {
        if !dry_run {
            bucket.remove(&listed.name)?;
        }
        removed.entries += 1;
    }
    for listed in objects
        .iter()
        .filter(|it| !needed.contains(&it.name) && is_old(it))
    {
        if !dry_run {
            bucket.remove(&listed.name)?;
        }
        removed.objects += 1;
        removed.bytes += listed.bytes;
    }
    Ok(removed)
}
