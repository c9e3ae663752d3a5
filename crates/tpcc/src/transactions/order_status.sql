create or replace function {orders}_status(w int, d int, number int, name text) returns int
language plpgsql as $body$
declare
    c int := number;
    an_order int;
begin
    if number = 0 then
        select c_id into strict c from {customer} where c_w_id = w and c_d_id = d and c_last = name
            order by c_first limit 1
            offset (select (count(*) + 1) / 2 - 1 from {customer} where c_w_id = w and c_d_id = d and c_last = name);
    end if;
    perform c_balance, c_first, c_middle, c_last from {customer} where c_w_id = w and c_d_id = d and c_id = c;
    select o_id into strict an_order from {orders} where o_w_id = w and o_d_id = d and o_c_id = c
        order by o_id desc limit 1;
    perform ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from {order_line}
        where ol_w_id = w and ol_d_id = d and ol_o_id = an_order;
    return an_order;
end $body$
