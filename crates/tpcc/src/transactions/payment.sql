create or replace function {history}_payment(
    w int, d int, cw int, cd int, number int, name text, amount numeric) returns int
language plpgsql as $body$
declare
    warehouse record;
    district record;
    customer record;
    c int := number;
begin
    update {warehouse} set w_ytd = w_ytd + amount where w_id = w
        returning w_street_1, w_street_2, w_city, w_state, w_zip, w_name into strict warehouse;
    update {district} set d_ytd = d_ytd + amount where d_w_id = w and d_id = d
        returning d_street_1, d_street_2, d_city, d_state, d_zip, d_name into strict district;
    if number = 0 then
        select c_id into strict c from {customer} where c_w_id = cw and c_d_id = cd and c_last = name
            order by c_first limit 1
            offset (select (count(*) + 1) / 2 - 1 from {customer} where c_w_id = cw and c_d_id = cd and c_last = name);
    end if;
    update {customer} set
        c_balance = c_balance - amount,
        c_ytd_payment = c_ytd_payment + amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = case c_credit when 'BC'
            then left(concat_ws(' ', c, cd, cw, d, w, round(amount, 2), c_data), 500) else c_data end
        where c_w_id = cw and c_d_id = cd and c_id = c
        returning c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit,
            c_credit_lim, c_discount, c_balance, c_ytd_payment, c_since into strict customer;
    insert into {history} (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        values (cd, cw, c, d, w, localtimestamp, amount, warehouse.w_name || '    ' || district.d_name);
    return c;
end $body$
