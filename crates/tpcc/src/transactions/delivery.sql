create or replace function {order_line}_delivery(w int, carrier int) returns int
language plpgsql as $body$
declare
    d int;
    an_order int;
    c int;
    amount numeric;
    delivered int := 0;
begin
    for d in 1 .. 10 loop
        select no_o_id into an_order from {new_order} where no_w_id = w and no_d_id = d
            order by no_o_id limit 1 for update;
        continue when not found;
        delete from {new_order} where no_w_id = w and no_d_id = d and no_o_id = an_order;
        update {orders} set o_carrier_id = carrier where o_w_id = w and o_d_id = d and o_id = an_order
            returning o_c_id into strict c;
        update {order_line} set ol_delivery_d = localtimestamp
            where ol_w_id = w and ol_d_id = d and ol_o_id = an_order;
        select sum(ol_amount) into strict amount from {order_line}
            where ol_w_id = w and ol_d_id = d and ol_o_id = an_order;
        update {customer} set c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
            where c_w_id = w and c_d_id = d and c_id = c;
        if not found then
            raise no_data_found using message = format('customer %s is not there', c);
        end if;
        delivered := delivered + 1;
    end loop;
    return delivered;
end $body$
