//! The part of QEMU's plugin interface, version 1, that is used here.
//!
//! No distribution packages the header, so the declarations are the project's
//! own. They are looked up by name in the running process rather than linked:
//! the same crate is also an ordinary library of the driver, which runs outside
//! QEMU and must link without it.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Interface version that this plugin is written for; QEMU reads the symbol.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

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

/// Called when a block is translated.
pub type TbTrans = unsafe extern "C" fn(PluginId, *mut Tb);
/// Called when a block or an instruction is executed.
pub type Exec = unsafe extern "C" fn(c_uint, *mut c_void);
/// Called for a memory access.
pub type Mem = unsafe extern "C" fn(c_uint, MemInfo, u64, *mut c_void);
/// Called when the program ends.
pub type AtExit = unsafe extern "C" fn(PluginId, *mut c_void);
/// Called before a system call.
pub type Syscall =
    unsafe extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// Called after a system call.
pub type SyscallRet = unsafe extern "C" fn(PluginId, c_uint, i64, i64);

/// The callback reads no guest registers.
pub const NO_REGS: c_int = 0;
/// Loads and stores.
pub const MEM_RW: c_int = 3;

/// The inline operation that adds a number to a word of 64 bits.
pub const ADD_U64: c_int = 0;

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
                    // SAFETY: the name is a C string; a null result is checked.
                    let found = unsafe {
                        libc::dlsym(libc::RTLD_DEFAULT, concat!($name, "\0").as_ptr().cast())
                    };
                    if found.is_null() {
                        return Err($name);
                    }
                    // SAFETY: the symbol is QEMU's function of this name, whose
                    // signature in interface version 1 is the declared one.
                    unsafe { core::mem::transmute::<*mut c_void, $type>(found) }
                },)* })
            }
        }
    };
}

functions! {
    /// QEMU's functions, by address.
    Api:
    /// Registers the translation callback.
    on_tb_trans = "qemu_plugin_register_vcpu_tb_trans_cb":
        unsafe extern "C" fn(PluginId, TbTrans);
    /// Registers the end of the program.
    on_exit = "qemu_plugin_register_atexit_cb":
        unsafe extern "C" fn(PluginId, AtExit, *mut c_void);
    /// Registers the callback before system calls.
    on_syscall = "qemu_plugin_register_vcpu_syscall_cb": unsafe extern "C" fn(PluginId, Syscall);
    /// Registers the callback after system calls.
    on_syscall_ret = "qemu_plugin_register_vcpu_syscall_ret_cb":
        unsafe extern "C" fn(PluginId, SyscallRet);
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
    /// Bytes of an instruction.
    insn_data = "qemu_plugin_insn_data": unsafe extern "C" fn(*const Insn) -> *const u8;
    /// Number of those bytes.
    insn_size = "qemu_plugin_insn_size": unsafe extern "C" fn(*const Insn) -> usize;
    /// Host address of an instruction.
    insn_haddr = "qemu_plugin_insn_haddr": unsafe extern "C" fn(*const Insn) -> *const u8;
    /// log2 of the bytes of an access.
    mem_size_shift = "qemu_plugin_mem_size_shift": unsafe extern "C" fn(MemInfo) -> c_uint;
    /// Is an access a store?
    mem_is_store = "qemu_plugin_mem_is_store": unsafe extern "C" fn(MemInfo) -> bool;
}

impl Api {
    /// The bits that say of a report that it is a store, found by asking QEMU: asking it
    /// each time would cost a call.
    pub fn store_bits(&self) -> MemInfo {
        // SAFETY: QEMU's function on numbers.
        let stores = (0..u32::BITS).filter(|b| unsafe { (self.mem_is_store)(1 << b) });
        stores.fold(0, |bits, b| bits | 1 << b)
    }
}

functions! {
    /// What only the emulation of a whole machine needs.
    SystemApi:
    /// Registers an addition for every execution of a block.
    on_tb_exec_inline = "qemu_plugin_register_vcpu_tb_exec_inline":
        unsafe extern "C" fn(*mut Tb, c_int, *mut c_void, u64);
    /// Where the access that is being reported went; null if QEMU does not know.
    hwaddr = "qemu_plugin_get_hwaddr": unsafe extern "C" fn(MemInfo, u64) -> *const HwAddr;
    /// Is it a device?
    hwaddr_is_io = "qemu_plugin_hwaddr_is_io": unsafe extern "C" fn(*const HwAddr) -> bool;
    /// Physical address; for a device, the offset in it.
    hwaddr_phys_addr = "qemu_plugin_hwaddr_phys_addr":
        unsafe extern "C" fn(*const HwAddr) -> u64;
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
