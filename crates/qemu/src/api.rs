//! The part of QEMU's plugin interface, versions 1 to 7, that is used here.
//!
//! No distribution packages the header, so the declarations are the project's
//! own. They are looked up by name in the running process rather than linked:
//! the same crate is also an ordinary library of the driver, which runs outside
//! QEMU and must link without it.
//!
//! # Versions
//! A QEMU says from which version on to which it serves plugins ([`Info`]). What differs for
//! this plugin, by the newest version that a QEMU serves (its `qemu-plugin.h`; that 11.1 serves
//! no other than 7 was tried with Debian's 11.1.3):
//!
//! | QEMU | serves | what is different |
//! |---|---|---|
//! | 7.2 to 8.2 | up to 1 | |
//! | 9.0 | 2 | inline operations work on numbers that each processor has of its own |
//! | 9.1 to 10.2 | 2 to 3, 4 and 5 | the bytes of an instruction are copied |
//! | 11.0 | up to 6 | (nothing that is used here) |
//! | 11.1 | 7 | callbacks are given no id, but a pointer of the plugin's at their end |
//!
//! The forms of calls depend on the newest version that a QEMU serves, not on the one that the
//! plugin declares ([`declared`]): QEMU has one set of functions.

pub mod declared;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// What QEMU tells about itself at installation.
#[repr(C)]
pub struct Info {
    /// Name of the guest architecture, `x86_64`.
    pub target_name: *const c_char,
    /// Oldest interface version that QEMU still serves.
    pub version_min: c_int,
    /// Newest interface version that QEMU serves.
    pub version_cur: c_int,
    /// Is a whole machine emulated (rather than one program)?
    pub system_emulation: bool,
    /// Virtual processors at start (whole machine only).
    pub smp_vcpus: c_int,
    /// Most virtual processors (whole machine only).
    pub max_vcpus: c_int,
}

impl Info {
    /// Name of the guest architecture.
    pub fn target(&self) -> String {
        // SAFETY: QEMU passes a C string.
        let name = unsafe { CStr::from_ptr(self.target_name) };
        name.to_string_lossy().into_owned()
    }
}

/// QEMU's name for a loaded plugin.
pub type PluginId = u64;
/// A block under translation; opaque, valid during the callback only.
pub enum Tb {}
/// An instruction of a block under translation.
pub enum Insn {}
/// Where an access went, in terms of the emulated machine; valid during the callback only.
pub enum HwAddr {}
/// Packed description of one memory access.
pub type MemInfo = u32;

/// Called when a block or an instruction is executed.
pub type Exec = unsafe extern "C" fn(c_uint, *mut c_void);
/// Called for a memory access.
pub type Mem = unsafe extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
/// A callback whose form depends on the version.
type Callback = *const c_void;

/// What a plugin does when QEMU calls it.
pub trait Events {
    /// A block is translated.
    ///
    /// # Safety
    /// The block must be the one under translation.
    unsafe fn translate(tb: *mut Tb);
    /// The program ends.
    fn exit();
}

/// What a plugin does when the program calls the kernel.
pub trait Calls {
    /// A call begins.
    fn begin(vcpu: c_uint, number: i64, args: [u64; 6]);
    /// It returns.
    fn end(vcpu: c_uint, number: i64, ret: i64);
}

/// The callback reads no guest registers.
pub const NO_REGS: c_int = 0;
/// Loads and stores.
pub const MEM_RW: c_int = 3;
/// The inline operation that adds a number to a word of 64 bits.
const ADD_U64: c_int = 0;

/// First version whose inline operations work on scoreboards.
const SCOREBOARDS: c_int = 2;
/// First version that copies the bytes of an instruction.
const COPIES: c_int = 3;
/// First version whose callbacks are given a pointer of the plugin's in place of its id.
const POINTERS: c_int = 7;

macro_rules! functions {
    ($(#[$what:meta])* $table:ident: $($(#[$doc:meta])* $field:ident = $name:literal: $type:ty;)*) => {
        $(#[$what])*
        pub struct $table { $($(#[$doc])* pub $field: $type,)* }

        impl $table {
            /// Looks all functions up in the running process.
            ///
            /// # Errors
            /// The name of the first function that this QEMU does not have.
            pub fn load() -> Result<Self, &'static str> {
                Ok(Self { $($field: {
                    let found = look_up(concat!($name, "\0")).ok_or($name)?;
                    // SAFETY: the symbol is QEMU's function of this name, whose
                    // signature in the served interface versions is the declared one.
                    unsafe { core::mem::transmute::<*mut c_void, $type>(found) }
                },)* })
            }
        }
    };
}

/// A function of the running process; the name ends in a zero byte.
fn look_up(name: &'static str) -> Option<*mut c_void> {
    debug_assert!(name.ends_with('\0'));
    // SAFETY: the name is a C string; a null result is checked.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
}

functions! {
    /// QEMU's functions, by address. Those before version 7 ignore the last argument of a
    /// registration, which is null here.
    Functions:
    /// Registers the translation callback.
    on_tb_trans = "qemu_plugin_register_vcpu_tb_trans_cb":
        unsafe extern "C" fn(PluginId, Callback, *mut c_void);
    /// Registers the end of the program.
    on_exit = "qemu_plugin_register_atexit_cb":
        unsafe extern "C" fn(PluginId, Callback, *mut c_void);
    /// Registers the callback before system calls.
    on_syscall = "qemu_plugin_register_vcpu_syscall_cb":
        unsafe extern "C" fn(PluginId, Callback, *mut c_void);
    /// Registers the callback after system calls.
    on_syscall_ret = "qemu_plugin_register_vcpu_syscall_ret_cb":
        unsafe extern "C" fn(PluginId, Callback, *mut c_void);
    /// Registers a callback for every execution of a block.
    on_tb_exec = "qemu_plugin_register_vcpu_tb_exec_cb":
        unsafe extern "C" fn(*mut Tb, Exec, c_int, *mut c_void);
    /// Registers a callback for every execution of an instruction.
    on_insn_exec = "qemu_plugin_register_vcpu_insn_exec_cb":
        unsafe extern "C" fn(*mut Insn, Exec, c_int, *mut c_void);
    /// Registers a callback for the accesses of an instruction.
    on_mem = "qemu_plugin_register_vcpu_mem_cb":
        unsafe extern "C" fn(*mut Insn, Mem, c_int, c_int, *mut c_void);
    /// Number of instructions of a block.
    tb_n_insns = "qemu_plugin_tb_n_insns": unsafe extern "C" fn(*const Tb) -> usize;
    /// Guest address of a block.
    tb_vaddr = "qemu_plugin_tb_vaddr": unsafe extern "C" fn(*const Tb) -> u64;
    /// An instruction of a block.
    tb_get_insn = "qemu_plugin_tb_get_insn": unsafe extern "C" fn(*const Tb, usize) -> *mut Insn;
    /// Before version 3: where the bytes of an instruction are, whatever the other arguments. From
    /// then on: copies them, as many as fit, and says how many.
    insn_data = "qemu_plugin_insn_data":
        unsafe extern "C" fn(*const Insn, *mut u8, usize) -> usize;
    /// Number of those bytes.
    insn_size = "qemu_plugin_insn_size": unsafe extern "C" fn(*const Insn) -> usize;
    /// Host address of an instruction.
    insn_haddr = "qemu_plugin_insn_haddr": unsafe extern "C" fn(*const Insn) -> *const u8;
    /// log2 of the bytes of an access.
    mem_size_shift = "qemu_plugin_mem_size_shift": unsafe extern "C" fn(MemInfo) -> c_uint;
    /// Is an access a store?
    mem_is_store = "qemu_plugin_mem_is_store": unsafe extern "C" fn(MemInfo) -> bool;
}

/// QEMU's functions in the forms that this QEMU has.
pub struct Api {
    functions: Functions,
    /// Newest version that it serves.
    version: c_int,
}

impl core::ops::Deref for Api {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Api {
    /// Looks all functions up in the running process.
    ///
    /// # Errors
    /// The name of the first function that this QEMU does not have.
    pub fn load(info: &Info) -> Result<Self, &'static str> {
        Ok(Self {
            functions: Functions::load()?,
            version: info.version_cur,
        })
    }

    /// The bits that say of a report that it is a store, found by asking QEMU: asking it
    /// each time would cost a call.
    pub fn store_bits(&self) -> MemInfo {
        // SAFETY: QEMU's function on numbers.
        let stores = (0..u32::BITS).filter(|b| unsafe { (self.mem_is_store)(1 << b) });
        stores.fold(0, |bits, b| bits | 1 << b)
    }

    /// Has QEMU call a plugin when it translates a block, and at the end.
    ///
    /// # Safety
    /// `id` must be the plugin's.
    pub unsafe fn subscribe<E: Events>(&self, id: PluginId) {
        let (translate, exit) = match self.version < POINTERS {
            true => (
                forms::with_id::translate::<E> as Callback,
                forms::with_id::exit::<E> as Callback,
            ),
            false => (
                forms::with_pointer::translate::<E> as Callback,
                forms::with_pointer::exit::<E> as Callback,
            ),
        };
        let none = core::ptr::null_mut();
        // SAFETY: QEMU's functions with callbacks of its version's types.
        unsafe {
            (self.on_tb_trans)(id, translate, none);
            (self.on_exit)(id, exit, none);
        }
    }

    /// Has QEMU call a plugin before and after each system call.
    ///
    /// # Safety
    /// `id` must be the plugin's.
    pub unsafe fn subscribe_calls<C: Calls>(&self, id: PluginId) {
        let (begin, end) = match self.version < POINTERS {
            true => (
                forms::with_id::begin::<C> as Callback,
                forms::with_id::end::<C> as Callback,
            ),
            false => (
                forms::with_pointer::begin::<C> as Callback,
                forms::with_pointer::end::<C> as Callback,
            ),
        };
        let none = core::ptr::null_mut();
        // SAFETY: as above.
        unsafe {
            (self.on_syscall)(id, begin, none);
            (self.on_syscall_ret)(id, end, none);
        }
    }

    /// Does the watch of an instruction that leaves its block end with the block, and may a repeated
    /// string instruction be one execution of its block? So it is from QEMU 9 on.
    pub fn ends_watches(&self) -> bool {
        self.version >= SCOREBOARDS
    }

    /// Are callbacks of processors that take turns given the number of the one for which the block was
    /// translated, rather than of the one that runs? So it is from QEMU 9.1 on.
    pub fn mistakes_processors(&self) -> bool {
        self.version >= SCOREBOARDS
    }

    /// Appends the bytes of an instruction; how many there are.
    ///
    /// # Safety
    /// The instruction must belong to the block under translation.
    pub unsafe fn append_bytes(&self, insn: *const Insn, to: &mut Vec<u8>) -> usize {
        // SAFETY: the caller's word.
        let size = unsafe { (self.insn_size)(insn) };
        let at = to.len();
        to.resize(at + size, 0);
        let room = &mut to[at..];
        // SAFETY: as above; there is room for as many bytes as the instruction has, and before
        // version 3 as many lie at the address that is returned.
        unsafe {
            let said = (self.insn_data)(insn, room.as_mut_ptr(), size);
            if self.version < COPIES {
                core::ptr::copy_nonoverlapping(said as *const u8, room.as_mut_ptr(), size);
            }
        }
        size
    }
}

/// Callbacks as QEMU calls them.
mod forms {
    /// Before version 7.
    pub mod with_id {
        use core::ffi::{c_uint, c_void};

        use super::super::{Calls, Events, PluginId, Tb};

        pub unsafe extern "C" fn translate<E: Events>(_: PluginId, tb: *mut Tb) {
            // SAFETY: QEMU passes the block under translation.
            unsafe { E::translate(tb) }
        }

        pub unsafe extern "C" fn exit<E: Events>(_: PluginId, _: *mut c_void) {
            E::exit();
        }

        pub unsafe extern "C" fn begin<C: Calls>(
            _: PluginId,
            vcpu: c_uint,
            number: i64,
            a: u64,
            b: u64,
            c: u64,
            d: u64,
            e: u64,
            f: u64,
            _: u64,
            _: u64,
        ) {
            C::begin(vcpu, number, [a, b, c, d, e, f]);
        }

        pub unsafe extern "C" fn end<C: Calls>(_: PluginId, vcpu: c_uint, number: i64, ret: i64) {
            C::end(vcpu, number, ret);
        }
    }

    /// From version 7 on.
    pub mod with_pointer {
        use core::ffi::{c_uint, c_void};

        use super::super::{Calls, Events, Tb};

        pub unsafe extern "C" fn translate<E: Events>(tb: *mut Tb, _: *mut c_void) {
            // SAFETY: QEMU passes the block under translation.
            unsafe { E::translate(tb) }
        }

        pub unsafe extern "C" fn exit<E: Events>(_: *mut c_void) {
            E::exit();
        }

        pub unsafe extern "C" fn begin<C: Calls>(
            vcpu: c_uint,
            number: i64,
            a: u64,
            b: u64,
            c: u64,
            d: u64,
            e: u64,
            f: u64,
            _: u64,
            _: u64,
            _: *mut c_void,
        ) {
            C::begin(vcpu, number, [a, b, c, d, e, f]);
        }

        pub unsafe extern "C" fn end<C: Calls>(
            vcpu: c_uint,
            number: i64,
            ret: i64,
            _: *mut c_void,
        ) {
            C::end(vcpu, number, ret);
        }
    }
}

functions! {
    /// What only the emulation of a whole machine needs.
    SystemApi:
    /// Where the access that is being reported went; null if QEMU does not know.
    hwaddr = "qemu_plugin_get_hwaddr": unsafe extern "C" fn(MemInfo, u64) -> *const HwAddr;
    /// Is it a device?
    hwaddr_is_io = "qemu_plugin_hwaddr_is_io": unsafe extern "C" fn(*const HwAddr) -> bool;
    /// Physical address; for a device, the offset in it.
    hwaddr_phys_addr = "qemu_plugin_hwaddr_phys_addr":
        unsafe extern "C" fn(*const HwAddr) -> u64;
}

functions! {
    /// Additions that translated code makes itself, before version 2. Those of later versions work
    /// on a number for each processor, and are not used: where processors take turns on one thread,
    /// QEMU changes a constant of the program by them (on all but the first processor): the kernel of a
    /// guest with two processors crashed on 11.1.3, and the source of 10.0.13 has the same.
    Additions:
    /// Registers an addition for every execution of a block.
    on_tb_exec_inline = "qemu_plugin_register_vcpu_tb_exec_inline":
        unsafe extern "C" fn(*mut Tb, c_int, *mut c_void, u64);
}

/// How executions of blocks are counted: in a word that lives as long as the process.
pub enum Counting {
    /// By translated code.
    Inline(Additions),
    /// By a callback, which adds the number that it is given.
    Called(Exec),
}

impl Counting {
    /// Finds the way that this QEMU has; `add` is the callback for the other one.
    ///
    /// # Errors
    /// The name of the first function that this QEMU does not have.
    pub fn load(info: &Info, add: Exec) -> Result<Self, &'static str> {
        match info.version_cur < SCOREBOARDS {
            true => Ok(Self::Inline(Additions::load()?)),
            false => Ok(Self::Called(add)),
        }
    }

    /// Has `n` added to the word for every execution of a block.
    ///
    /// # Safety
    /// The block must be the one under translation, and the word live as long as the process.
    pub unsafe fn add(&self, api: &Api, tb: *mut Tb, word: *mut u64, n: u64) {
        // SAFETY: the caller's word.
        unsafe {
            match self {
                Self::Inline(f) => (f.on_tb_exec_inline)(tb, ADD_U64, word.cast(), n),
                Self::Called(add) => (api.on_tb_exec)(tb, *add, NO_REGS, n as *mut c_void),
            }
        }
    }
}

/// A virtual processor, as QEMU itself knows it.
pub enum Cpu {}

functions! {
    /// What QEMU exports for its own modules and does not promise to plugins.
    CpuApi:
    /// A virtual processor by its number; null if there is none.
    get_cpu = "qemu_get_cpu": unsafe extern "C" fn(c_int) -> *mut Cpu;
    /// Makes a virtual processor leave its code at the next block, as an interrupt would.
    exit = "cpu_exit": unsafe extern "C" fn(*mut Cpu);
}

/// QEMU's thread-local variable that points to the virtual processor that runs, for the calling
/// thread. `None` if it is not exported.
pub fn current_cpu() -> Option<*const *mut Cpu> {
    Some(look_up("current_cpu\0")?.cast_const().cast())
}
