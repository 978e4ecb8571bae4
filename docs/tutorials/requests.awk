# A block trace such as a database leaves, in the form of Microsoft's servers (MSR). Reads and writes of
# tables of 64 MiB, most of them to few pages; every 50,000 requests a backup reads 128 MiB, once.
# Random numbers are those of Park and Miller (1988), whose products a double holds exactly.
BEGIN {
    seed = 42
    for (i = 0; i < 600000; i++) {
        seed = seed * 16807 % 2147483647; where = seed / 2147483647
        seed = seed * 16807 % 2147483647; write = seed / 2147483647 < 0.1
        page = int(16384 * where * where * where * where); pages = 1
        if (i % 50000 >= 48000) {
            page = 16384 + (i % 50000 - 48000) * 16; pages = 16; write = 0
        }
        printf "%.0f,db,0,%s,%.0f,%d,0\n", 128166372000000000 + i * 10000,
            write ? "Write" : "Read", page * 4096, pages * 4096
    }
}
