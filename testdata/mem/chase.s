# A program small enough to follow by hand: six steps along a linked list, a sum of eight numbers,
# a push and a pop, a store, an update; exit status 3. No libc.
        .globl _start
        .text
_start:
        lea     nodes(%rip), %rax
        mov     $6, %ecx
1:      mov     (%rax), %rax
        dec     %ecx
        jnz     1b
        xor     %edx, %edx
        lea     array(%rip), %rbx
        mov     $8, %ecx
2:      add     (%rbx), %rdx
        add     $8, %rbx
        dec     %ecx
        jnz     2b
        push    %rdx
        pop     %rsi
        mov     %rsi, out(%rip)
        incq    count(%rip)
        mov     $231, %eax
        mov     $3, %edi
        syscall

        .data
        .balign 4096
nodes:  .quad   nodes + 192
        .zero   56
        .quad   nodes + 320
        .zero   56
        .quad   nodes + 256
        .zero   56
        .quad   nodes + 64
        .zero   56
        .quad   nodes
        .zero   56
        .quad   nodes + 128
        .zero   56
array:  .quad   1, 2, 3, 4, 5, 6, 7, 8
out:    .quad   0
count:  .quad   41
