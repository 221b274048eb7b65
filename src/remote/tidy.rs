//! Looks a remote through (`fsck`), and removes what nobody keeps (`gc`). Only these two list it.

use std::collections::HashSet;
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use store::Digest;

use super::Remote;
use super::bucket::{Listed, read_small};
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
}

/// Reads everything and hashes it.
pub fn fsck(remote: &Remote) -> Result<Examined, String> {
    let examined = Mutex::new(Examined::default());
    let note = |name: &str, outcome: Result<(), String>, object: bool| {
        let mut examined = examined.lock().expect("nobody panics with it");
        match outcome {
            Ok(()) if object => examined.objects += 1,
            Ok(()) => examined.entries += 1,
            Err(why) => examined.wrong.push(format!("{name} {why}")),
        }
    };
    let objects = remote.bucket.list("cas/")?;
    in_parallel(&objects, |it| {
        note(&it.name, object(remote, it), true);
        Ok(())
    })?;
    let there: HashSet<String> = objects.into_iter().map(|it| it.name).collect();
    in_parallel(&remote.bucket.list("ac/")?, |it| {
        let outcome = entry(remote, &it.name).and_then(|statement| {
            let mut outputs = statement.outputs.iter();
            match outputs.find(|it| !there.contains(&super::object_name(&it.digest))) {
                Some(lost) => Err(format!(
                    "names the object {}, which is not there",
                    lost.digest
                )),
                None => Ok(()),
            }
        });
        note(&it.name, outcome, false);
        Ok(())
    })?;
    let mut examined = examined.into_inner().expect("nobody panics with it");
    examined.wrong.sort();
    Ok(examined)
}

fn object(remote: &Remote, listed: &Listed) -> Result<(), String> {
    let digest = listed
        .name
        .strip_prefix("cas/")
        .and_then(|it| it.parse().ok());
    let digest: Digest = digest.ok_or("is not the name of an object")?;
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
