//! File systems of a test's own, which can be taken down as by a loss of power, or be full.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system that is mounted until it is dropped.
pub struct Mount {
    pub path: PathBuf,
    /// The file that an ext4 lies in; none for one in memory.
    image: Option<PathBuf>,
    mounted: bool,
}

fn run(command: &[&str]) -> Result<(), String> {
    let output = Command::new(command[0]).args(&command[1..]).output();
    let output = output.map_err(|error| format!("{}: {error}", command[0]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", command.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

impl Mount {
    /// An ext4 in a file of `megabytes` in `dir`, which writes to it only when told to.
    pub fn ext4(dir: &Path, megabytes: u64) -> Result<Self, String> {
        let (path, image) = (dir.join("ext4"), dir.join("ext4.img"));
        std::fs::create_dir(&path).map_err(|error| error.to_string())?;
        let file = File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(megabytes << 20).map_err(|error| error.to_string())?;
        run(&["mkfs.ext4", "-q", "-F", text(&image)])?;
        let mut mount = Self { path, image: Some(image), mounted: false };
        mount.mount()?;
        Ok(mount)
    }

    /// A file system in memory.
    pub fn tmpfs(dir: &Path, megabytes: u64) -> Result<Self, String> {
        let path = dir.join("tmpfs");
        std::fs::create_dir(&path).map_err(|error| error.to_string())?;
        let size = format!("size={megabytes}m");
        run(&["mount", "-t", "tmpfs", "-o", &size, "none", text(&path)])?;
        Ok(Self { path, image: None, mounted: true })
    }

    /// Makes the file system in memory larger.
    pub fn enlarge(&self, megabytes: u64) {
        let options = format!("remount,size={megabytes}m");
        run(&["mount", "-o", &options, text(&self.path)]).expect("enlarged");
    }

    fn mount(&mut self) -> Result<(), String> {
        let image = self.image.as_ref().expect("an image");
        // The journal's own clock would write what nobody synced, and hide that.
        run(&["mount", "-o", "loop,commit=3600", text(image), text(&self.path)])?;
        self.mounted = true;
        Ok(())
    }

    /// Stops the file system dead: what is not synced never reaches the image, and everything
    /// fails from now on.
    pub fn cut_power(&self) -> Result<(), String> {
        let directory = File::open(&self.path).map_err(|error| error.to_string())?;
        shut_down(&directory).map_err(|error| format!("FS_IOC_SHUTDOWN: {error}"))
    }

    /// Has everyone who writes to it wait until the answer is dropped.
    pub fn freeze(&self) -> Result<Frozen<'_>, String> {
        run(&["fsfreeze", "-f", text(&self.path)])?;
        Ok(Frozen(self))
    }

    /// Mounts it again after [`Self::cut_power`], once nobody uses it.
    pub fn restore(&mut self) {
        run(&["umount", text(&self.path)]).expect("unmounted");
        self.mounted = false;
        self.mount().expect("mounted again");
    }
}

/// `FS_IOC_SHUTDOWN`, `_IOR('X', 125, __u32)`, with `EXT4_GOING_FLAGS_NOLOGFLUSH`.
#[allow(unsafe_code, reason = "there is no safe name for this request")]
fn shut_down(directory: &File) -> rustix::io::Result<()> {
    const SHUTDOWN: rustix::ioctl::Opcode = 0x8004_587d;
    const WITHOUT_FLUSH: u32 = 2;
    // SAFETY: the request reads one u32 through the pointer, and the setter gives it one.
    unsafe {
        let request = rustix::ioctl::Setter::<SHUTDOWN, u32>::new(WITHOUT_FLUSH);
        rustix::ioctl::ioctl(directory, request)
    }
}

/// A file system that takes no writes.
pub struct Frozen<'a>(&'a Mount);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        run(&["fsfreeze", "-u", text(&self.0.path)]).expect("thawed");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted && run(&["umount", text(&self.path)]).is_err() {
            let _ = run(&["umount", "-l", text(&self.path)]);
        }
    }
}

/// What a test needs that this machine may not permit. Where it must not be missing, `required`
/// names the variable of the environment that is then 1.
pub fn permitted<T>(required: &str, got: Result<T, String>) -> Option<T> {
    match got {
        Ok(got) => Some(got),
        Err(reason) => {
            assert!(std::env::var(required).is_err(), "{required}, but: {reason}");
            // Past the capture of tests that pass: nobody should believe that it ran.
            let _ = writeln!(std::io::stderr(), "not run: {reason}");
            None
        }
    }
}
