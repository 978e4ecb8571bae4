-- Trees that are built, walked and dropped, on the heap of a garbage collector.
local function bottom_up(depth, value)
    if depth == 0 then return { value } end
    return { value, bottom_up(depth - 1, 2 * value), bottom_up(depth - 1, 2 * value + 1) }
end
local function sum(tree)
    if not tree[2] then return tree[1] end
    return tree[1] + sum(tree[2]) + sum(tree[3])
end
local kept = {}
local total = 0
for turn = 1, 10000 do
    kept[turn % 24 + 1] = bottom_up(10, turn)
    for _, tree in pairs(kept) do total = (total + sum(tree)) % 1000003 end
end
print(total)
