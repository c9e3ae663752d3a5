create or replace function {new_order}_transaction(
    w int, d int, c int, items int[], suppliers int[], quantities int[], rolls_back boolean) returns int
language plpgsql as $body$
declare
    customer record;
    district record;
    item record;
    stock record;
    line int;
begin
    select c_discount, c_last, c_credit, w_tax into strict customer from {customer}, {warehouse}
        where w_id = w and c_w_id = w_id and c_d_id = d and c_id = c;
    update {district} set d_next_o_id = d_next_o_id + 1 where d_w_id = w and d_id = d
        returning d_next_o_id - 1 as an_order, d_tax into strict district;
    insert into {orders} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        values (district.an_order, d, w, c, localtimestamp, cardinality(items), (w = all (suppliers))::int);
    insert into {new_order} (no_o_id, no_d_id, no_w_id) values (district.an_order, d, w);
    for line in 1 .. cardinality(items) loop
        select i_price, i_name, i_data into item from {item} where i_id = items[line];
        if not found then
            -- Who has said so beforehand rolls back; else nothing of it may stay.
            if rolls_back then
                return null;
            end if;
            raise no_data_found using message = format('item %s is not there', items[line]);
        end if;
        update {stock} set
            s_quantity = case when s_quantity >= quantities[line] + 10
                then s_quantity - quantities[line] else s_quantity + 91 - quantities[line] end,
            s_ytd = s_ytd + quantities[line],
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (suppliers[line] <> w)::int
            where s_w_id = suppliers[line] and s_i_id = items[line]
            returning s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08,
                s_dist_09, s_dist_10 into strict stock;
        insert into {order_line} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                ol_amount, ol_dist_info)
            values (district.an_order, d, w, line, items[line], suppliers[line], quantities[line],
                item.i_price * quantities[line],
                case d when 1 then stock.s_dist_01 when 2 then stock.s_dist_02 when 3 then stock.s_dist_03
                    when 4 then stock.s_dist_04 when 5 then stock.s_dist_05 when 6 then stock.s_dist_06
                    when 7 then stock.s_dist_07 when 8 then stock.s_dist_08 when 9 then stock.s_dist_09
                    else stock.s_dist_10 end);
    end loop;
    return district.an_order;
end $body$
