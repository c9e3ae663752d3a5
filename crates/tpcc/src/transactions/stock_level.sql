create or replace function {stock}_level(w int, d int, threshold int) returns bigint
language plpgsql as $body$
declare
    next int;
    low bigint;
begin
    select d_next_o_id into strict next from {district} where d_w_id = w and d_id = d;
    select pg_catalog.count(distinct s_i_id) into strict low from {order_line}, {stock}
        where ol_w_id = w and ol_d_id = d and ol_o_id >= next - 20 and ol_o_id < next
        and s_w_id = w and s_i_id = ol_i_id and s_quantity < threshold;
    return low;
end $body$
